package config

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/acl"
)

// openProblems are those of open_routes.
func (a *Agent) openProblems(p *problems) {
	for _, g := range a.OpenRoutes {
		p.check(slices.Contains(acl.OpenGroups(), g), "open_routes", "%q is no group of routes: there are %s", g,
			strings.Join(acl.OpenGroups(), ", "))
	}
}
