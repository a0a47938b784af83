package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/control/command"
)

func TestScalingEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	register := register(job("j", "service", 1))
	register.Scaling = &command.ScalingRecord{Group: "g", Event: drover.ScalingEvent{Count: new(int64(3)), PreviousCount: 1}}
	b.do(register)
	for range drover.TrackedScalingEvents {
		b.do(&command.RecordScaling{Namespace: "default", JobID: "j", Record: command.ScalingRecord{Group: "g", Event: drover.ScalingEvent{Message: "no"}}})
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
