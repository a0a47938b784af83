package job

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestDiffOfAnAddedJob(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	(&differ{w: &b}).job(&drover.JobDiff{
		Type: drover.DiffAdded, ID: "j", Fields: []*drover.FieldDiff{{Type: drover.DiffEdited, Name: "Priority", Old: "0", New: "50"}},
		TaskGroups: []*drover.TaskGroupDiff{{
			Type: drover.DiffAdded, Name: "g", Updates: map[string]uint64{"create": 2},
			Objects: []*drover.ObjectDiff{{
				Type: drover.DiffDeleted, Name: "Disk",
				Fields: []*drover.FieldDiff{{Type: drover.DiffDeleted, Name: "Size", Old: "1"}},
			}, {
				Type: drover.DiffEdited, Name: "Update", Fields: []*drover.FieldDiff{
					{Type: drover.DiffEdited, Name: "Stagger", Old: "30000000000", New: "90000000000"},
					{Type: drover.DiffAdded, Name: "ProgressDeadline", New: "600000000000"},
					{Type: drover.DiffDeleted, Name: "Interval", Old: "3600000000000"},
					{Type: drover.DiffAdded, Name: "Delay", New: "0"},
					{Type: drover.DiffAdded, Name: "Count", New: "30000000000"},
				},
			}},
			Tasks: []*drover.TaskDiff{{Type: drover.DiffNone, Name: "same"}, {
				Type: drover.DiffEdited, Name: "t",
				Annotations: []string{"forces create"},
			}},
		}},
	})
	require.Equal(t, `+ Job: "j"
  + Priority: "50"
+ Task Group: "g" (2 create)
  - Disk {
    - Size: "1"
  }
  +/- Update {
    +/- Stagger: "30s" => "1m30s"
    + ProgressDeadline: "10m"
    - Interval: "1h"
    + Delay: "0"
    + Count: "30000000000"
  }
  +/- Task: "t" (forces create)
`, b.String())
}
