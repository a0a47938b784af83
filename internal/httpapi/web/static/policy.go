package static

import (
	"net/http"
	"slices"
	"strings"
)

// Sources are what the agent's configuration allows browsers beside what this agent serves, by the directive of a Content-Security-Policy.
type Sources map[string][]string

// Protect sets the headers of a page. One with a terminal may set styles of its own, as xterm.js does; scripts stay what they are. What
// the configuration says of a directive takes the place of the default. The agent itself stays allowed where the page needs it.
func (s Sources) Protect(h http.Header, terminal bool) {
	Protect(h)
	directives := strings.Split(ContentPolicy, "; ")
	for i, d := range directives {
		name, list, _ := strings.Cut(d, " ")
		if given := s[name]; len(given) > 0 {
			sources := slices.DeleteFunc(slices.Clone(given), func(one string) bool { return one == "'none'" || one == list })
			if list == "'self'" {
				sources = slices.Insert(sources, 0, list)
			}
			if len(sources) == 0 {
				sources = []string{"'none'"}
			}
			directives[i] = name + " " + strings.Join(sources, " ")
		}
		if name == "style-src" && terminal && !slices.Contains(s[name], "'unsafe-inline'") {
			directives[i] += " 'unsafe-inline'"
		}
	}
	h.Set("Content-Security-Policy", strings.Join(directives, "; "))
	if !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		h.Del("X-Frame-Options") // it knows no list, and the directive holds
	}
}
