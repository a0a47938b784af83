package scheduler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// What replaces an allocation goes where that one's data is, whatever other node would be better, if the disk is sticky: the node
// took the data over only by chance. A node that is down, draining, full or forbidden is not insisted on.
func TestAStickyDiskKeepsToItsNode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		w.config.SchedulerAlgorithm = rapid.SampledFrom([]string{drover.SchedulerBinpack, drover.SchedulerSpread}).Draw(rt, "likes")
		for i := range rapid.IntRange(2, 5).Draw(rt, "nodes") {
			w.addNode(fmt.Sprintf("n%d", i), nil)
		}
		j := newJob("db", drover.JobTypeService, rapid.IntRange(1, 3).Draw(rt, "count"))
		j.TaskGroups[0].EphemeralDisk.Sticky = true
		w.putJob(j)
		w.eval("db")
		w.settle()
		full := newJob("other", drover.JobTypeService, rapid.IntRange(0, 8).Draw(rt, "others"))
		full.TaskGroups[0].Tasks[0].Resources.CPU = 1000
		w.putJob(full)
		w.eval("other")
		w.settle()

		old := w.live("db")[0]
		room := w.nodes[old.NodeID].Total().Sub(w.Used(old.NodeID))
		switch rapid.IntRange(0, 2).Draw(rt, "how") {
		case 0:
			w.change(old.ID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientFailed })
			room = w.nodes[old.NodeID].Total().Sub(w.Used(old.NodeID))
		case 1:
			w.change(old.ID, func(a *drover.Allocation) { a.DesiredTransition.Migrate = new(true) })
		case 2:
			next := newJob("db", drover.JobTypeService, *j.TaskGroups[0].Count)
			next.TaskGroups[0].EphemeralDisk.Sticky = true
			next.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "b"}
			w.putJob(next)
		}
		barred := rapid.Bool().Draw(rt, "barred")
		if barred {
			n := new(*w.nodes[old.NodeID])
			n.SchedulingEligibility = drover.NodeIneligible
			w.nodes[n.ID] = n
		}
		for _, a := range placed(w.eval("db")) {
			previous := w.allocs[a.PreviousAllocation]
			if previous == nil || previous.ID != old.ID {
				continue
			}
			// The others of the group may have taken the room before it: each needs 500 MHz.
			if !barred && room.CPU >= 500*int64(*j.TaskGroups[0].Count) {
				require.Equal(rt, old.NodeID, a.NodeID)
			}
			require.True(rt, !barred || a.NodeID != old.NodeID)
		}
	})
}
