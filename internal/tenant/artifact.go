package tenant

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/tenancy"
)

// rawExec is the driver whose tasks read the files of their node.
const rawExec = "raw_exec"

// refusedFiles says which artifacts are files of the node. The agent reads them, with its own rights: so they are for those who
// may read them by a task as well.
func refusedFiles(ns *tenancy.Namespace, j *drover.Job) (errs []error) {
	c := ns.Capabilities
	if len(refuse(nil, rawExec, c.EnabledTaskDrivers, c.DisabledTaskDrivers)) == 0 {
		return nil
	}
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			for _, a := range t.Artifacts {
				if a != nil && mayBeFile(a.GetterSource) {
					errs = append(errs, fmt.Errorf("task %q: artifact %q may be a file of the node, which takes the task driver %q, "+
						"and that is not allowed in namespace %q", t.Name, a.GetterSource, rawExec, ns.Name))
				}
			}
		}
	}
	return errs
}

// mayBeFile reports whether the source of an artifact is a file of the node, or begins with what may become one when a node puts its
// values in.
func mayBeFile(source string) bool {
	source = strings.TrimLeft(source, ":")
	if strings.HasPrefix(source, "/") || len(source) >= 5 && strings.EqualFold(source[:5], "file:") {
		return true
	}
	head, _, replaced := strings.Cut(source, "${")
	return replaced && !strings.Contains(head, "/") && !strings.Contains(head, "::")
}
