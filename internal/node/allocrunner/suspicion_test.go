package allocrunner_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
)

// deadly is a hook that does not end: the agent ends before.
type deadly struct{ tasks map[string]bool }

func (deadly) Name() string { return "deadly" }
func (deadly) Once() bool   { return false }

func (d deadly) Prestart(ctx context.Context, r *hook.Request) error {
	if d.tasks[r.Task.Name] {
		<-ctx.Done()
	}
	return ctx.Err()
}

// restartIn restarts the agent, as one that died or did not, with a hook that is deadly for these tasks.
func (b *bundle) restartIn(died bool, tasks ...string) {
	b.deadly = map[string]bool{}
	for _, t := range tasks {
		b.deadly[t] = true
	}
	b.again(died)
	close(b.contacted)
	b.sleep(0)
}

func TestAgentThatDiesTwiceInHooksTriesNoThirdTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false)))
		b.deadly = map[string]bool{"main": true}
		b.boot()
		b.start()
		require.Empty(t, b.journal())
		b.restartIn(true, "main")
		require.Equal(t, "pending", b.last().ClientStatus)
		b.restartIn(true)
		require.Equal(t, "failed", b.last().ClientStatus)
		require.Empty(t, b.journal(), "it was not tried again")
		events := b.last().TaskStates["main"].Events
		require.Contains(t, b.events("main"), "Setup Failure")
		said := ""
		for _, e := range events {
			said += e.DisplayMessage
		}
		require.Contains(t, said, "the node's agent died twice while this task was being prepared")
		b.restartIn(true)
		require.True(t, b.runner.View().Ended())
	})
}

func TestAgentThatIsStoppedInHooksTriesAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false)))
		b.deadly = map[string]bool{"main": true}
		b.boot()
		b.start()
		for _, died := range []bool{false, true, false, false, true, false} { // never twice in a row
			b.restartIn(died, "main")
			require.Equal(t, "pending", b.last().ClientStatus)
		}
		b.restartIn(false)
		require.Equal(t, "running", b.last().ClientStatus)
		require.Equal(t, "start main", b.journal())
	})
}

// Only the task is given up during whose hooks the agent died; others that were suspected with it start.
func TestInnocentTasksAreNotGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("batch", task("a", "", false), task("b", "", false)))
		b.deadly = map[string]bool{"a": true, "b": true}
		b.boot()
		b.start()
		b.restartIn(true) // both are suspected, and begin to run
		require.Equal(t, "running", b.last().ClientStatus)
		b.restartIn(true)
		require.Equal(t, "running", b.last().ClientStatus)
		b.endTask("a", driver.Exit{})
		b.endTask("b", driver.Exit{})
		require.Equal(t, "complete", b.last().ClientStatus)
	})
}
