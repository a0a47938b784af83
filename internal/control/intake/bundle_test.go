package intake

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// memoryLog applies at once.
type memoryLog struct {
	mu    sync.Mutex
	fsm   *fsm.FSM
	index uint64
	last  command.Command
}

func (l *memoryLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	l.last = c
	result, err := l.fsm.Apply(l.index, data)
	return l.index, result, err
}

type bundle struct {
	*Intake
	t     *testing.T
	store *store.Store
	log   *memoryLog
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	return bundleIn(t)
}

// bundleIn is setup for who is in a bubble.
func bundleIn(t *testing.T) *bundle {
	t.Helper()
	st := store.New()
	log := &memoryLog{fsm: fsm.New(st, nil)}
	return &bundle{
		Intake: New(Deps{Log: log, Store: st, Clock: clock.Wall{}, IDs: id.Random{}}), t: t, store: st, log: log,
	}
}

func (b *bundle) propose(c command.Command) {
	b.t.Helper()
	_, _, err := b.log.Propose(b.t.Context(), c)
	require.NoError(b.t, err)
}

func (b *bundle) register(j *drover.Job) drover.Outcome {
	b.t.Helper()
	o, err := b.RegisterJob(b.t.Context(), drover.RegisterRequest{Job: j})
	require.NoError(b.t, err)
	return o
}

func (b *bundle) job(jobID string) *drover.Job { return b.store.Snapshot().Job("default", jobID) }

func code(t *testing.T, want drover.Code, err error, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, drover.CodeOf(err), err.Error())
	require.Contains(t, err.Error(), text)
}

func job(jobID, kind string) *drover.Job {
	return &drover.Job{
		ID: jobID, Type: kind,
		TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{Name: "t", Driver: "fake"}}}},
	}
}

// placed puts an allocation of the job into the state.
func (b *bundle) placed(allocID, jobID, nodeID string) {
	b.t.Helper()
	j := b.job(jobID)
	b.propose(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: j, Placed: []*drover.Allocation{{
		ID: allocID, Namespace: "default", JobID: jobID, TaskGroup: "g", Name: jobID + ".g[0]", NodeID: nodeID,
	}}}}})
}
