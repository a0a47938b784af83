package drover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// validateServices checks the services of a group or of one of its tasks. Their ports may be labels of the whole group,
// numbers, or interpolations that only the node can resolve.
func validateServices(v *report, at string, g *TaskGroup, list []*Service) {
	labels := g.ports()
	known := func(port string) bool {
		_, err := strconv.Atoi(port)
		return port == "" || err == nil || labels[port] || strings.Contains(port, "${")
	}
	for i, s := range list {
		if s == nil {
			v.Addf(fmt.Sprintf("%s.Services[%d]", at, i), "must not be null")
			continue
		}
		where := fmt.Sprintf("%s.service[%s]", at, nameOr(s.Name, i))
		v.Check(s.Provider == "nomad" || s.Provider == "consul", where+".Provider", "must be nomad or consul, got %q", s.Provider)
		v.Check(len(s.Name) <= 63 && !strings.ContainsAny(s.Name, " \x00/"), where+".Name", "must be usable in DNS, got %q", s.Name)
		v.Check(known(s.PortLabel), where+".PortLabel", "the group has no port %q", s.PortLabel)
		for k, c := range s.Checks {
			validateCheck(v, fmt.Sprintf("%s.Checks[%d]", where, k), c, known)
		}
	}
}

// validateCheck looks at a check under the names of HCL and of JSON.
func validateCheck(v *report, at string, c map[string]any, known func(string) bool) {
	text := func(names ...string) string {
		for _, n := range names {
			if s, ok := c[n].(string); ok {
				return s
			}
		}
		return ""
	}
	kind := text("type", "Type")
	v.Check(slices.Contains([]string{"http", "tcp", "grpc", "script"}, kind), at+".Type", "must be http, tcp, grpc or script, got %q", kind)
	v.Check(kind != "http" || text("path", "Path") != "", at+".Path", "must be set for http")
	port := text("port", "PortLabel")
	v.Check(known(port), at+".PortLabel", "the group has no port %q", port)
}
