package claims

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/references"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/workload"
)

// The bounds of a namespace's extra claims: tokens travel in headers and variables.
const (
	MaxExtra      = 32   // claims, required and optional ones together
	MaxExtraName  = 128  // bytes
	MaxExtraValue = 1024 // bytes, with references as they are written
)

// Place is what the references in extra claims are replaced with: where a task runs.
type Place struct {
	Region, Task string
	Alloc        *drover.Allocation
	Node         *drover.Node // nil: what is of the node is empty
}

// placeOf has the references that extra claims may have, and what they stand for.
var placeOf = map[string]func(p Place) string{
	"job.region":      func(p Place) string { return p.Region },
	"job.namespace":   func(p Place) string { return p.Alloc.Namespace },
	"job.id":          func(p Place) string { return Job(p.Alloc) },
	"group.name":      func(p Place) string { return p.Alloc.TaskGroup },
	"task.name":       func(p Place) string { return p.Task },
	"alloc.id":        func(p Place) string { return p.Alloc.ID },
	"node.id":         func(p Place) string { return p.Alloc.NodeID },
	"node.pool":       func(p Place) string { return of(p.Node).NodePool },
	"node.class":      func(p Place) string { return of(p.Node).NodeClass },
	"node.datacenter": func(p Place) string { return of(p.Node).Datacenter },
}

func of(n *drover.Node) *drover.Node { return cmp.Or(n, &drover.Node{}) }

// References are the references that values of extra claims may have, sorted.
func References() []string { return slices.Sorted(maps.Keys(placeOf)) }

// Extra are the claims that a namespace adds to a task's identity: those that it requires, and those of the others that the identity
// names. One that the namespace does not have any more is left out.
func Extra(ns *tenancy.Namespace, w *workload.Identity, p Place) map[string]string {
	if ns == nil || len(ns.RequiredExtraClaims)+len(ns.OptionalExtraClaims) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, name := range w.ExtraClaims {
		if value, ok := ns.OptionalExtraClaims[name]; ok {
			out[name] = replaced(value, p)
		}
	}
	for name, value := range ns.RequiredExtraClaims {
		out[name] = replaced(value, p)
	}
	return out
}

// replaced is a value with what its references stand for; "$${" stands for "${".
func replaced(value string, p Place) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		ref, after, closed := strings.Cut(rest, "}")
		of := placeOf[strings.TrimSpace(ref)]
		before, escaped := strings.CutSuffix(before, "$")
		out.WriteString(before)
		switch {
		case !found:
			return out.String() + value[len(before):]
		case escaped || !closed || of == nil:
			out.WriteString("${")
			value = rest
		default:
			out.WriteString(of(p))
			value = after
		}
	}
}

// CheckExtra refuses extra claims of a namespace that cannot be meant. Errors: Invalid, with the field.
func CheckExtra(ns *tenancy.Namespace) error {
	fault := func(field, name, format string, args ...any) error {
		return drover.Errorf(drover.Invalid, "namespace %q: %s: claim %q %s", ns.Name, field, name, fmt.Sprintf(format, args...))
	}
	if n := len(ns.RequiredExtraClaims) + len(ns.OptionalExtraClaims); n > MaxExtra {
		return drover.Errorf(drover.Invalid, "namespace %q: %d extra claims, the limit is %d", ns.Name, n, MaxExtra)
	}
	for field, all := range map[string]map[string]string{
		"RequiredExtraClaims": ns.RequiredExtraClaims, "OptionalExtraClaims": ns.OptionalExtraClaims,
	} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			_, required := ns.RequiredExtraClaims[name]
			switch value := all[name]; {
			case name == "" || len(name) > MaxExtraName || strings.ContainsFunc(name, unicode.IsControl):
				return fault(field, name, "must have 1 to %d bytes of text", MaxExtraName)
			case Reserved(name):
				return fault(field, name, "is the standard's or the cluster's own")
			case field == "OptionalExtraClaims" && required:
				return fault(field, name, "is required already")
			case len(value) > MaxExtraValue:
				return fault(field, name, "has %d bytes, the limit is %d", len(value), MaxExtraValue)
			default:
				for _, ref := range references.In(value) {
					if placeOf[ref] == nil {
						return fault(field, name, "has ${%s}: known are %s", ref, strings.Join(References(), ", "))
					}
				}
			}
		}
	}
	return nil
}
