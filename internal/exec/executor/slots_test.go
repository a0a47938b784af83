package executor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
)

// slots has room for so many executions; one is free again when its end was told, or it is given back.
type slots struct {
	mu   sync.Mutex
	most int
	of   map[string]bool
	told
}

func (s *slots) Take(_ context.Context, allocID, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := allocID + " " + id
	for _, e := range s.all() {
		if e.Type == executor.EventEnded {
			delete(s.of, e.Execution.AllocID+" "+e.Execution.ID)
		}
	}
	switch {
	case s.of[key]:
		return false, nil
	case len(s.of) >= s.most:
		return false, drover.Errorf(drover.Exhausted, `quota "q" is reached`)
	}
	s.of[key] = true
	return true, nil
}

func (s *slots) GiveBack(_ context.Context, allocID, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, allocID+" "+id)
	return nil
}

// An execution beyond the quota is not started; one that ended, or could not be started, leaves its slot to the next.
func TestAQuotaBoundsExecutions(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.stop()
		s := &slots{most: 1, of: map[string]bool{}}
		b.startWith(t, executor.Config{}, executor.Deps{Teller: &s.told, Slots: s})
		first, err := b.Start(t.Context(), b.runner.ID, sh("sleep 10"))
		require.NoError(t, err)
		_, err = b.Start(t.Context(), b.runner.ID, sh("echo one"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		list, err := b.List(t.Context(), b.runner.ID)
		require.NoError(t, err)
		require.Len(t, list, 1, "it was not started")
		time.Sleep(20 * time.Second) // synctest's time: it ended, and its end was told
		require.False(t, first.Info().Running)
		second, err := b.Start(t.Context(), b.runner.ID, sh("echo one"))
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.False(t, second.Info().Running)

		_, err = b.Start(t.Context(), b.runner.ID, execution.Spec{Argv: []string{exectest.Stuck}})
		require.Error(t, err)
		_, err = b.Start(t.Context(), b.runner.ID, sh("echo one"))
		require.NoError(t, err, "what was not started has no slot")
	})
}
