package intake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// How important a job may be, and how important it is if it does not say, the server's configuration says.
func TestPrioritiesOfTheServer(t *testing.T) {
	b := setup(t)
	register := func(priority, eval int) error {
		j := job("j", "service")
		j.Priority = priority
		_, err := b.RegisterJob(t.Context(), drover.RegisterRequest{Job: j, EvalPriority: eval})
		return err
	}
	for _, c := range []struct {
		most, usual, priority, eval int
		stored                      int
		says                        string
	}{
		{0, 0, 0, 0, 50, ""},
		{0, 0, 100, 100, 100, ""},
		{0, 0, 101, 0, 0, "job.Priority: must be from 1 to 100, got 101 (server.job_max_priority)"},
		{0, 0, 50, 101, 0, "EvalPriority: must be from 1 to 100, got 101"},
		{32_766, 70, 0, 0, 70, ""},
		{32_766, 70, 32_766, 32_766, 32_766, ""},
		{32_766, 70, 32_767, 0, 0, "job.Priority: must be from 1 to 32766, got 32767 (server.job_max_priority)"},
		{0, 0, 32_767, 0, 0, "job.Priority: must be from 1 to 100, got 32767 (server.job_max_priority)"},
		{0, 0, -1, 0, 0, "job.Priority: must be from 1 to 100, got -1 (server.job_max_priority)"},
		{200, 0, -1, 0, 0, "job.Priority: must be from 1 to 200, got -1 (server.job_max_priority)"},
		{0, 0, 50, -1, 0, "EvalPriority: must be from 1 to 100, got -1"},
		{0, 0, 1, 1, 1, ""},
	} {
		b.deps.MaxPriority, b.deps.DefaultPriority = c.most, c.usual
		err := register(c.priority, c.eval)
		if c.says != "" {
			code(t, drover.Invalid, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.stored, b.deps.Store.Snapshot().Job("default", "j").Priority)
	}
	b.deps.MaxPriority = 0
	_, err := b.DeregisterJob(t.Context(), drover.DeregisterRequest{Namespace: "default", ID: "j", EvalPriority: 101})
	code(t, drover.Invalid, err, "eval_priority: must be from 1 to 100")
}

// server.job_tracked_versions is said with each registration, once all servers understand it.
func TestVersionsOfAJobThatAreKept(t *testing.T) {
	b := setup(t)
	b.deps.Versions = 2
	for _, c := range []struct{ cluster, kept int }{{sayHowMany - 1, 5}, {sayHowMany, 2}} {
		b.propose(&command.RaiseVersion{Version: c.cluster})
		for n := range 5 {
			j := job("j", "service")
			j.Priority = n + 1
			_, err := b.RegisterJob(t.Context(), drover.RegisterRequest{Job: j})
			require.NoError(t, err)
		}
		require.Len(t, b.store.Snapshot().JobVersions("default", "j"), c.kept, c.cluster)
	}
}
