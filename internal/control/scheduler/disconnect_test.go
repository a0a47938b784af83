package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func disconnected(t *testing.T, s *drover.DisconnectStrategy) (*world, *drover.Allocation) {
	w := newWorld()
	for _, id := range []string{"n1", "n2"} {
		w.addNode(id, nil)
	}
	j := newJob("j", drover.JobTypeService, 1)
	j.TaskGroups[0].Disconnect = s
	w.putJob(j)
	w.eval("j")
	w.settle()
	require.Len(t, w.live("j"), 1)
	a := w.live("j")[0]
	w.status(a.NodeID, drover.NodeStatusDisconnected)
	return w, a
}

func (w *world) status(node, status string) {
	n := new(*w.nodes[node])
	n.Status = status
	w.nodes[node] = n
}

// forgetting is what the state does when an allocation becomes unknown.
func (w *world) forgetting(id string) {
	w.change(id, func(a *drover.Allocation) { a.UnknownSince = w.now.UnixNano() })
}

func TestAnAllocationThatCannotBeSeenIsUnknownAndReplaced(t *testing.T) {
	t.Parallel()
	w, a := disconnected(t, &drover.DisconnectStrategy{LostAfter: time.Hour})
	out := w.eval("j")
	w.forgetting(a.ID)
	require.Equal(t, drover.AllocClientUnknown, w.allocs[a.ID].ClientStatus)
	require.Equal(t, drover.AllocDesiredRun, w.allocs[a.ID].DesiredStatus)
	require.Len(t, out.NewEvals, 1)
	require.Equal(t, w.now.Add(time.Hour), out.NewEvals[0].WaitUntil)
	require.Equal(t, drover.TriggerDisconnectTimeout, out.NewEvals[0].TriggeredBy)
	require.Len(t, w.live("j"), 2)
	w.settle()
	require.True(t, w.eval("j").Plan.Empty(), "nothing more to do meanwhile")

	w.now = w.now.Add(time.Hour)
	w.eval("j")
	require.Equal(t, drover.AllocClientLost, w.allocs[a.ID].ClientStatus)
	require.Len(t, w.live("j"), 1, "the replacement")
}

func TestAnAllocationThatComesBack(t *testing.T) {
	t.Parallel()
	for strategy, original := range map[string]bool{
		"": true, drover.ReconcileKeepOriginal: true, drover.ReconcileKeepReplacement: false,
		drover.ReconcileLongestRunning: true, drover.ReconcileBestScore: true,
	} {
		w, a := disconnected(t, &drover.DisconnectStrategy{LostAfter: time.Hour, Reconcile: strategy})
		w.eval("j")
		w.forgetting(a.ID)
		w.settle()
		w.status(a.NodeID, drover.NodeStatusReady)
		require.True(t, w.eval("j").Plan.Empty(), "the node has not said yet what became of it")
		w.settle()
		w.eval("j")
		w.settle()
		live := w.live("j")
		require.Len(t, live, 1, strategy)
		require.Equal(t, original, live[0].ID == a.ID, strategy)
		require.True(t, w.eval("j").Plan.Empty())
	}
}

func TestAnAllocationThatIsNotReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	w, a := disconnected(t, &drover.DisconnectStrategy{LostAfter: time.Hour, Replace: new(false)})
	w.eval("j")
	w.forgetting(a.ID)
	require.Len(t, w.live("j"), 1)
	w.now = w.now.Add(time.Hour)
	w.eval("j")
	require.Equal(t, drover.AllocClientLost, w.allocs[a.ID].ClientStatus)
	require.Len(t, w.live("j"), 1)
	require.NotEqual(t, a.ID, w.live("j")[0].ID)
}

func TestWithoutADisconnectBlockItIsLostAtOnce(t *testing.T) {
	t.Parallel()
	w, a := disconnected(t, nil)
	w.eval("j")
	require.Equal(t, drover.AllocClientLost, w.allocs[a.ID].ClientStatus)
}
