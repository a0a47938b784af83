package taskrunner_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

func TestARunningTaskIsFoundAgain(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		started := b.runner.Status().State.StartedAt
		b.after(time.Minute)
		require.Equal(t, taskmachine.Restored{}, b.restored())
		b.apply(taskmachine.Restored{})
		require.Equal(t, taskmachine.Running, b.phase())
		require.True(t, started.Equal(b.runner.Status().State.StartedAt))
		b.world.Running("main").End(driver.Exit{})
		b.settle()
		require.Equal(t, taskmachine.Dead, b.phase())
		require.Equal(t, []string{"start main", "attach main", "end main", "destroy main"}, b.world.Journal())
	})
}

func TestATaskThatVanished(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		b.world.Lose()
		e := b.restored()
		require.IsType(t, taskmachine.RestoreFailed{}, e)
		require.Empty(t, b.runner.Record().Intent)
		b.apply(e)
		b.after(2 * time.Second)
		require.Equal(t, taskmachine.Running, b.phase(), "it is started again under its policy")
	})
}

func TestADeadTaskStaysDead(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		b.world.Running("main").End(driver.Exit{})
		b.settle()
		require.Nil(t, b.restored())
		require.Equal(t, taskmachine.Dead, b.phase())
	})
}

// TestAnExitThatWasStoredCounts: the agent died between the storing of an exit and what follows from it.
func TestAnExitThatWasStoredCounts(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		record := b.stored()
		record.Exit = &localstate.Exit{Code: 7, Signal: 1, OOMKilled: true, Err: "x"}
		b.leave()
		want := taskmachine.RestoredExit{Code: 7, Signal: 1, OOMKilled: true, Err: "x"}
		require.Equal(t, want, b.recovered(record))
		require.Contains(t, b.world.Journal(), "destroy main", "what the driver still had of it is freed")
		b.apply(want)
		require.Equal(t, taskmachine.Backoff, b.phase())
	})
}

// TestAStartThatWasNotStored: the agent died between the driver's start and the storing of how to find it.
func TestAStartThatWasNotStored(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		record := b.stored()
		b.leave()
		record.Handle, record.State = nil, nil
		require.Equal(t, taskmachine.Restored{}, b.recovered(record))
		require.NotEmpty(t, b.stored().Handle, "now it is stored")
		require.Same(t, b.world.Running("main"), b.runner.Handle())
	})
}

func TestAStartThatNeverHappened(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		var reclaimed []string
		b.shared.Reclaim = func(_ context.Context, dir string) error {
			reclaimed = append(reclaimed, dir)
			return errors.New("nothing there")
		}
		require.Nil(t, b.recovered(localstate.Task{Intent: "a start that was interrupted"}))
		require.Equal(t, []string{b.cfg.Dir.Task("main").State}, reclaimed)
		require.Empty(t, b.runner.Record().Intent)
		b.apply(taskmachine.Go{})
		require.Equal(t, taskmachine.Running, b.phase())
	})
}

func TestADriverThatIsNotThereAnyMore(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		delete(b.shared.Drivers, "fake")
		require.Equal(t, taskmachine.RestoreFailed{Reason: "its driver is not on this node any more"}, b.restored())
	})
}

func TestAHandleThatCannotBeRead(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		require.IsType(t, taskmachine.RestoreFailed{}, b.recovered(localstate.Task{Handle: json.RawMessage(`{"ID":`)}))
		require.Empty(t, b.world.Journal())
	})
}

// away is a driver that cannot attach for a while.
type away struct {
	driver.Driver
	times int
}

func (d *away) Attach(ctx context.Context, s driver.State) (driver.Handle, error) {
	if d.times--; d.times >= 0 {
		return nil, errors.New("dockerd does not answer")
	}
	return d.Driver.Attach(ctx, s)
}

func TestAttachingIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times int
		took  time.Duration
		want  taskmachine.Event
	}{
		"once":      {1, 250 * time.Millisecond, taskmachine.Restored{}},
		"thrice":    {3, 1750 * time.Millisecond, taskmachine.Restored{}},
		"the bound": {5, 3750 * time.Millisecond, taskmachine.RestoreFailed{Reason: "dockerd does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, b *bundle) {
				b.fresh()
				b.shared.Drivers["fake"] = &away{b.world, c.times}
				began := time.Now()
				require.Equal(t, c.want, b.restored())
				require.Equal(t, c.took, time.Since(began))
			})
		})
	}
}

func TestAPreparationThatKilledTheAgentTwice(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Died = true
		e := b.recovered(localstate.Task{Preparing: true})
		require.IsType(t, taskmachine.Kill{}, e)
		b.apply(e)
		require.Equal(t, taskmachine.Dead, b.phase())
		require.True(t, b.stored().State.Failed)
		require.Contains(t, b.history(), drover.TaskSetupFailure)
	})
}

func TestAPreparationThatAnOrderlyStopCut(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		require.Nil(t, b.recovered(localstate.Task{Preparing: true}))
		require.False(t, b.stored().Preparing)
		b.apply(taskmachine.Go{})
		require.Equal(t, taskmachine.Running, b.phase())
	})
}

func TestASuspectIsPreparedAloneAndThatIsStored(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Died = true
		proceed := make(chan struct{})
		b.shared.Hooks = []hook.Prestart{step{"h", false, func(context.Context, *hook.Request) error { <-proceed; return nil }}}
		require.Nil(t, b.recovered(localstate.Task{}))
		b.apply(taskmachine.Go{})
		require.True(t, b.stored().Preparing)
		require.Len(t, b.shared.Turn, 1)
		close(proceed)
		b.settle()
		require.Equal(t, taskmachine.Running, b.phase())
		require.False(t, b.stored().Preparing)
		require.Empty(t, b.shared.Turn)
	})
}

func TestASuspectWaitsForOthersOnlySoLong(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Died = true
		b.shared.Turn <- struct{}{} // another suspect, with a large download
		require.Nil(t, b.recovered(localstate.Task{}))
		b.apply(taskmachine.Go{})
		b.after(9 * time.Second)
		require.Equal(t, taskmachine.Preparing, b.phase())
		b.after(time.Second)
		require.Equal(t, taskmachine.Running, b.phase())
		require.Len(t, b.shared.Turn, 1, "the other's turn is not ended")
	})
}
