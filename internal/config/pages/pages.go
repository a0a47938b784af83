package pages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/lazyregexp"
)

// UI is the web page.
type UI struct {
	Enabled *bool  `hcl:"enabled,optional"` // serve the page at /ui/; default true
	Label   *Label `hcl:"label,block"`
	// sources beside the agent itself that browsers allow the page: what is given takes the default's place, but the agent stays allowed
	Policy *ContentPolicy `hcl:"content_security_policy,block"`
	Rest   hcl.Body       `hcl:",remain" json:"-"`
}

// Label is shown on every page, to tell clusters apart.
type Label struct {
	Text       string `hcl:"text"`                      // what it says
	Background string `hcl:"background_color,optional"` // as CSS has colours: "#b00020", "darkred"; default: the page's
	Color      string `hcl:"text_color,optional"`       // the same of the text; default: the page's
}

// ContentPolicy is what browsers let pages load, run and be shown in, beside what the agent itself serves.
type ContentPolicy struct {
	Connect   []string `hcl:"connect_src,optional"`     // where scripts may connect to; default: the agent alone
	Default   []string `hcl:"default_src,optional"`     // what nothing else is said of; default: none
	Form      []string `hcl:"form_action,optional"`     // where forms may lead; default: the agent alone
	Ancestors []string `hcl:"frame_ancestors,optional"` // pages that may show this one within them; default: none
	Image     []string `hcl:"img_src,optional"`         // where pictures may come from; default: the agent alone
	Script    []string `hcl:"script_src,optional"`      // where scripts may come from; default: the agent alone
	Style     []string `hcl:"style_src,optional"`       // where styles may come from; default: the agent alone
	Rest      hcl.Body `hcl:",remain" json:"-"`
}

// Off reports that the page is not served.
func (u *UI) Off() bool { return u != nil && u.Enabled != nil && !*u.Enabled }

// Sources are those of each directive of a Content-Security-Policy that is given.
func (u *UI) Sources() map[string][]string {
	out := map[string][]string{}
	if u == nil || u.Policy == nil {
		return out
	}
	for name, list := range map[string][]string{
		"connect-src": u.Policy.Connect, "default-src": u.Policy.Default, "form-action": u.Policy.Form,
		"frame-ancestors": u.Policy.Ancestors, "img-src": u.Policy.Image, "script-src": u.Policy.Script, "style-src": u.Policy.Style,
	} {
		if len(list) > 0 {
			out[name] = list
		}
	}
	return out
}

var (
	// source is one of a Content-Security-Policy: no other directive or policy can begin in it.
	source = lazyregexp.New(`^[!-+\--:<-~]{1,256}$`)
	// colour is a colour of CSS by its name or its parts of red, green and blue.
	colour = lazyregexp.New(`^(#([0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})|[a-zA-Z]{3,30})$`)
)

// Problems are what is wrong with the block, by the names of its keys.
func (u *UI) Problems() (list []error) {
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Errorf("ui."+key+": "+format, args...))
		}
	}
	for name, sources := range u.Sources() {
		for _, s := range sources {
			check(source().MatchString(s), "content_security_policy."+strings.ReplaceAll(name, "-", "_"),
				`must be sources such as "'self'" or "https://example.org", without space, comma or semicolon, got %q`, s)
		}
	}
	if l := cmp.Or(u, &UI{}).Label; l != nil {
		check(len(l.Text) > 0 && len(l.Text) <= 60, "label.text", "must have from 1 to 60 bytes, got %d", len(l.Text))
		for key, c := range map[string]string{"background_color": l.Background, "text_color": l.Color} {
			check(c == "" || colour().MatchString(c), "label."+key, `must be a colour such as "#b00020" or "darkred", got %q`, c)
		}
	}
	return list
}
