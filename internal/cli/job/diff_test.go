package job

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/jobdiff"
)

func TestDiffOfAnAddedJob(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	(&differ{w: &b}).job(&jobdiff.Job{
		Type: jobdiff.Added, ID: "j", Fields: []*jobdiff.Field{{Type: jobdiff.Edited, Name: "Priority", Old: "0", New: "50"}},
		TaskGroups: []*jobdiff.Group{{
			Type: jobdiff.Added, Name: "g", Updates: map[string]uint64{"create": 2},
			Objects: []*jobdiff.Object{{
				Type: jobdiff.Deleted, Name: "Disk",
				Fields: []*jobdiff.Field{{Type: jobdiff.Deleted, Name: "Size", Old: "1"}},
			}, {
				Type: jobdiff.Edited, Name: "Update", Fields: []*jobdiff.Field{
					{Type: jobdiff.Edited, Name: "Stagger", Old: "30000000000", New: "90000000000"},
					{Type: jobdiff.Added, Name: "ProgressDeadline", New: "600000000000"},
					{Type: jobdiff.Deleted, Name: "Interval", Old: "3600000000000"},
					{Type: jobdiff.Added, Name: "Delay", New: "0"},
					{Type: jobdiff.Added, Name: "Count", New: "30000000000"},
				},
			}},
			Tasks: []*jobdiff.Task{{Type: jobdiff.None, Name: "same"}, {
				Type: jobdiff.Edited, Name: "t",
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
