package drover

import (
	"fmt"

	"github.com/drover-project/drover/internal/validation"
)

// validateArtifacts checks a task's downloads. Whether the source can be reached is found out on the node.
func validateArtifacts(v *validation.Report, at string, list []*TaskArtifact) {
	for i, a := range list {
		where := fmt.Sprintf("%s.Artifacts[%d]", at, i)
		if a == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(a.GetterSource != "", where+".GetterSource", "must be set")
		v.Check(validation.InAllocation(a.RelativeDest), where+".RelativeDest", "must not leave the allocation's folder, got %q", a.RelativeDest)
		v.Check(a.GetterMode == "any" || a.GetterMode == "file" || a.GetterMode == "dir", where+".GetterMode",
			"must be any, file or dir, got %q", a.GetterMode)
	}
}
