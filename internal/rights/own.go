package rights

import (
	"strings"

	"github.com/drover-project/drover/internal/policy"
)

// Own is what a workload may do without any policy: find the services of its namespace, and list and read its job's variables.
type Own struct {
	Namespace string
	paths     [4]string // of the variables; "" = none
}

// OwnOf returns what the task of a job's group may do. A name with a slash in it has no variables of its own, as its path would be
// another's.
func OwnOf(namespace, job, group, task string) *Own {
	o := &Own{Namespace: namespace, paths: [4]string{"nomad/jobs"}}
	path := "nomad/jobs"
	for i, name := range []string{job, group, task} {
		if name == "" || i > 0 && strings.Contains(name, "/") {
			break
		}
		path += "/" + name
		o.paths[i+1] = path
	}
	return o
}

// With returns the rights with what a workload may do in any case, whatever the policies say.
func (r *Rights) With(own *Own) *Rights {
	out := *r
	out.own = own
	return &out
}

// services reports whether the capability is that of finding the services of the namespace.
func (o *Own) services(namespace string, c policy.Capability) bool {
	return o != nil && c == policy.ReadServices && (namespace == o.Namespace || namespace == AnyNamespace)
}

// variable reports whether the capability is given for the variable.
func (o *Own) variable(namespace, path string, c policy.VariableCapability) bool {
	if o == nil || namespace != o.Namespace || path == "" || c != policy.ReadVariable && c != policy.ListVariables {
		return false
	}
	for _, p := range o.paths {
		if p == path {
			return true
		}
	}
	return false
}

// some reports whether the capability is given for some variable of the namespace.
func (o *Own) some(namespace string, c policy.VariableCapability) bool {
	return o != nil && (namespace == o.Namespace || namespace == AnyNamespace) && (c == policy.ReadVariable || c == policy.ListVariables)
}
