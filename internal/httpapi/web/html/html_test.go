package html

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	parser "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"
)

// TestWhateverIsWrittenComesBackAsText parses with another's parser what was written: texts and attributes are what they were, and no
// element or attribute is there that was not asked for.
func TestWhateverIsWrittenComesBackAsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onclick='x`, "&lt;", "\u202Egpj.exe", "</textarea><b>", "--><b>",
		}))
		text, value := hostile.Draw(t, "text"), hostile.Draw(t, "value")
		tag := rapid.SampledFrom([]string{"p", "textarea", "pre", "title", "td"}).Draw(t, "tag")
		doc := El("div", Attr("title", value), El(tag, Class("x"), Text(text)))
		parent := &parser.Node{Type: parser.ElementNode, Data: "body", DataAtom: atom.Body}
		if tag == "td" {
			doc = El("table", El("tbody", El("tr", El("td", Attr("title", value), Class("x"), Text(text)))))
		}
		nodes, err := parser.ParseFragment(strings.NewReader(doc.String()), parent)
		if err != nil {
			t.Fatal(err)
		}
		var elements, attributes int
		var got, title string
		var walk func(n *parser.Node)
		walk = func(n *parser.Node) {
			if n.Type == parser.ElementNode {
				elements++
				attributes += len(n.Attr)
			}
			for _, a := range n.Attr {
				if a.Key == "title" {
					title = a.Val
				}
			}
			if n.Type == parser.TextNode {
				got += n.Data
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				walk(c)
			}
		}
		for _, n := range nodes {
			walk(n)
		}
		plain := func(s string) string {
			s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
			return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
		}
		want := map[bool]int{true: 4, false: 2}[tag == "td"]
		if elements != want || attributes != 2 || got != plain(text) || title != plain(value) {
			t.Fatalf("%d elements, %d attributes, text %q, title %q of\n%s", elements, attributes, got, title, doc)
		}
	})
}

func TestNoCodeAndNoForeignAddress(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"onclick", "style", "href", "src", "srcdoc", "action", "formaction", "a b", "x="} {
		require.Panics(t, func() { Attr(name, "x") }, name)
	}
	for _, tag := range []string{"script", "style", "iframe", "base", "object", "svg", "b onclick=x"} {
		require.Panics(t, func() { El(tag) }, tag)
	}
	require.Panics(t, func() { Group(Class("x")) })
	require.Equal(t, "/javascript:x%2F%2F", Path("javascript:x//").String())
	require.Equal(t, "/ui/a%2Fb%3Fc%23d", Path("ui", "a/b?c#d").String())
	require.NotContains(t, Path("ui", "..", "v1").String(), "/..")
	require.Equal(t, "/ui/?q=%3Ca%26b&n=1", Path("ui", "").With("q", "<a&b").With("n", "1").String())
	require.Equal(t, `<input value="a&#34;b">`, El("input", Attr("value", `a"b`)).String())
	require.Equal(t, "<textarea>\n\nx</textarea>", El("textarea", Text("\nx")).String())
	require.Equal(t, `<p><bdi>שלום</bdi></p>`, El("p", Name("שלום"), If(false, Text("x")), Flag("hidden", false)).String())
}
