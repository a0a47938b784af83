package html

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Part is what an element is made of: attributes and content. Only this package makes parts.
type Part struct {
	attribute bool
	markup    string
}

// URL is an address below this page's origin.
type URL struct{ text string }

// Path returns the address of the parts, each of which is one segment, whatever it holds: Path("ui", "jobs", id).
func Path(parts ...string) URL {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		if p == "." || p == ".." { // browsers would climb
			p = strings.ReplaceAll(p, ".", "%252E")
			b.WriteString(p)
			continue
		}
		b.WriteString(url.PathEscape(p))
	}
	return URL{b.String()}
}

// With returns the address with a parameter of the query.
func (u URL) With(name, value string) URL {
	between := "?"
	if strings.Contains(u.text, "?") {
		between = "&"
	}
	return URL{u.text + between + url.QueryEscape(name) + "=" + url.QueryEscape(value)}
}

// String returns the address for a header.
func (u URL) String() string { return u.text }

// escaper makes text of what has a meaning in HTML, in content and in quoted attributes. A NUL has no place in a document.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD")

// Text is content.
func Text(s string) Part { return Part{markup: escaper.Replace(strings.ToValidUTF8(s, "\uFFFD"))} }

// Int is a number as content.
func Int(n int) Part { return Part{markup: strconv.Itoa(n)} }

// Name is text that somebody else chose. A name that is written from right to left does not turn what is beside it.
func Name(s string) Part { return El("bdi", Text(s)) }

// Group is several parts of content, one after the other.
func Group(parts ...Part) Part {
	var b strings.Builder
	for _, p := range parts {
		if p.attribute {
			panic("html: an attribute outside of an element")
		}
		b.WriteString(p.markup)
	}
	return Part{markup: b.String()}
}

// If returns the part, or nothing.
func If(yes bool, p Part) Part {
	if yes {
		return p
	}
	return Part{}
}

// empty are the elements without content or end.
var empty = []string{"input", "meta", "link", "br", "hr"}

// allowed are the elements that there are for El. What executes, embeds or redirects is not among them.
var allowed = strings.Fields("a b bdi body button canvas code dd details dialog div dl dt fieldset footer form h1 h2 h3 head header html " +
	"input kbd label legend li link main meta meter nav ol option output " +
	"p pre section select small span strong summary table tbody td textarea th thead " +
	"time title tr ul")

// El is an element. Its tag is one of the allowed ones.
func El(tag string, parts ...Part) Part {
	if !slices.Contains(allowed, tag) {
		panic("html: no element " + tag)
	}
	var attributes, content strings.Builder
	for _, p := range parts {
		if p.attribute {
			attributes.WriteString(p.markup)
		} else {
			content.WriteString(p.markup)
		}
	}
	begin := "<" + tag + attributes.String() + ">"
	if slices.Contains(empty, tag) {
		return Part{markup: begin}
	}
	if tag == "textarea" || tag == "pre" { // the first line feed in them is not content
		begin += "\n"
	}
	return Part{markup: begin + content.String() + "</" + tag + ">"}
}

// Module is a script of the page's own, by its address.
func Module(src URL) Part {
	return Part{markup: `<script type="module" src="` + escaper.Replace(src.text) + `"></script>`}
}

// refused are names of attributes that hold style, addresses or documents.
var refused = []string{"style", "href", "src", "action", "formaction", "srcdoc", "http-equiv"}

// Attr is an attribute whose value is text. Names of attributes that hold code, style or addresses are refused: a mistake of the program.
func Attr(name, value string) Part {
	switch {
	case strings.HasPrefix(name, "on"), slices.Contains(refused, name), strings.ContainsAny(name, " \"'<>/=\t\n"):
		panic("html: no attribute " + name)
	}
	return Part{attribute: true, markup: " " + name + `="` + escaper.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`}
}

// Flag is an attribute without value, where yes.
func Flag(name string, yes bool) Part {
	if !yes {
		return Part{}
	}
	return Attr(name, "")
}

// Class is the attribute class.
func Class(names string) Part { return Attr("class", names) }

// ID is the attribute id.
func ID(id string) Part { return Attr("id", id) }

// Href is the attribute href.
func Href(u URL) Part { return address("href", u) }

// Action is the attribute action of a form.
func Action(u URL) Part { return address("action", u) }

func address(name string, u URL) Part {
	return Part{attribute: true, markup: " " + name + `="` + escaper.Replace(u.text) + `"`}
}

// Anchor is a link to an element of the same page.
func Anchor(id string, parts ...Part) Part {
	return El("a", append(parts, address("href", URL{"#" + url.PathEscape(id)}))...)
}

// Elsewhere is a link to another site, which gets no hold of this page. Of an address that is none of the web's only the words are shown.
func Elsewhere(to, words string) Part {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return Name(words)
	}
	return El("a", address("href", URL{u.String()}), Attr("rel", "noopener noreferrer nofollow"), Name(words))
}

// Document is a whole document of one html element.
func Document(root Part) []byte { return []byte("<!doctype html>\n" + root.markup) }

// String returns the markup, for tests.
func (p Part) String() string { return p.markup }
