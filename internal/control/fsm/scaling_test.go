package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

func TestScalingEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	register := register(job("j", "service", 1))
	register.Scaling = &command.ScalingRecord{Group: "g", Event: drover.ScalingEvent{Count: new(int64(3)), PreviousCount: 1}}
	b.do(register)
	for range drover.TrackedScalingEvents {
		b.do(&command.RecordScaling{
			Namespace: "default", JobID: "j",
			Record: command.ScalingRecord{Group: "g", Event: drover.ScalingEvent{Message: "no"}},
		})
	}
	list := b.now().ScalingEvents("default", "j").ScalingEvents["g"]
	require.Len(t, list, drover.TrackedScalingEvents)
	require.Equal(t, b.index, list[0].CreateIndex)
	require.Equal(t, "no", list[len(list)-1].Message, "the oldest went")
	for _, r := range []*command.RecordScaling{
		{Namespace: "default", JobID: "x"},
		{Namespace: "default", JobID: "j", Record: command.ScalingRecord{Group: "x"}},
	} {
		_, err := b.try(r)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	}
	restore(t, b.f)
	b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Purge: true})
	require.Nil(t, b.now().ScalingEvents("default", "j"))
}

func TestNodeMeta(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := node("n")
	n.Node.Meta = map[string]string{"own": "1", "gone": "1"}
	b.do(n)
	b.do(&command.SetNodeMeta{NodeID: "n", Meta: map[string]*string{"gone": nil, "new": new("2")}})
	require.Equal(t, map[string]string{"own": "1", "new": "2"}, b.now().Node("n").Meta)
	restore(t, b.f)
	n.Node.Meta = map[string]string{"own": "3", "gone": "1"}
	b.do(n)
	require.Equal(t, map[string]string{"own": "3", "new": "2"}, b.now().Node("n").Meta, "a registration keeps what was set")
	require.Equal(t, n.Node.Meta, b.now().Node("n").OwnMeta())
	_, err := b.try(&command.SetNodeMeta{NodeID: "x"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

// A version's source goes with the version, and outlives a restore.
func TestJobSubmissions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	register := func(priority int, source string) {
		j := job("j", "service", 1)
		j.Priority = priority
		b.do(&command.RegisterJob{Job: j, Submission: &drover.JobSubmission{Source: source}})
	}
	for i := range drover.TrackedJobVersions + 2 {
		register(10+i, "v")
	}
	require.Nil(t, b.now().JobSubmission("default", "j", 1))
	newest := uint64(drover.TrackedJobVersions + 1)
	register(10+int(newest), "again") // the same specification
	require.Equal(t, "again", b.now().JobSubmission("default", "j", newest).Source)
	restore(t, b.f) // to the same hash
	b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Purge: true})
	require.Nil(t, b.now().JobSubmission("default", "j", newest))
}
