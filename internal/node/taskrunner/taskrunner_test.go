package taskrunner_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/usage"
)

func TestATaskRunsToItsEnd(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		var told []driver.Exit
		b.shared.Terminated = func(_ *drover.Allocation, task string, x driver.Exit) {
			require.Equal(t, "main", task)
			told = append(told, x)
		}
		b.fresh()
		require.Equal(t, taskmachine.Running, b.phase())
		running := b.world.Running("main")
		require.NotNil(t, b.runner.Handle())
		require.Equal(t, running.Spec.ID, b.stored().Intent, "the id of the start was stored")
		require.NotEmpty(t, b.stored().Handle, "and how to find it")

		running.End(driver.Exit{})
		b.settle()
		require.Equal(t, taskmachine.Dead, b.phase())
		require.Nil(t, b.runner.Handle())
		require.Equal(t, []string{"start main", "end main", "destroy main"}, b.world.Journal())
		require.Equal(t, []driver.Exit{{}}, told)
		kept := b.stored()
		require.True(t, kept.Stopped)
		require.Empty(t, kept.Intent)
		require.False(t, kept.State.Failed)
		require.Equal(t, "Received, Started, Terminated", b.history())
	})
}

// TestADeadTaskHoldsNothingOfItsStart: a node knows its ended allocations until control does not list them any more.
func TestADeadTaskHoldsNothingOfItsStart(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		var request weak.Pointer[hook.Request]
		b.shared.Hooks = []hook.Prestart{step{"socket", false, func(_ context.Context, r *hook.Request) error {
			request = weak.Make(r)
			return nil
		}}}
		b.fresh()
		runtime.GC()
		require.NotNil(t, request.Value())
		b.world.Running("main").End(driver.Exit{})
		b.settle()
		require.Equal(t, taskmachine.Dead, b.phase())
		runtime.GC()
		require.Nil(t, request.Value(), "the task's socket, environment and templates are kept")
		runtime.KeepAlive(b.runner)
	})
}

func TestAFailedTaskIsStartedAgainUnderAnotherID(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		first := b.world.Running("main")
		first.End(driver.Exit{Code: 3})
		b.settle()
		require.Equal(t, taskmachine.Backoff, b.phase())
		b.after(2 * time.Second)
		require.Equal(t, taskmachine.Running, b.phase())
		second := b.world.Running("main")
		require.NotEqual(t, first.Spec.ID, second.Spec.ID)
		require.Equal(t, second.Spec.ID, b.stored().Intent)
		second.End(driver.Exit{Code: 137, Signal: 9, OOMKilled: true})
		b.settle()
		require.Equal(t, taskmachine.Dead, b.phase(), "the policy allows one restart")
		require.True(t, b.stored().State.Failed)
	})
}

func TestAHookThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		var ran []string
		broken := true
		b.shared.Hooks = []hook.Prestart{
			step{"once", true, func(context.Context, *hook.Request) error { ran = append(ran, "once"); return nil }},
			step{"always", false, func(context.Context, *hook.Request) error { ran = append(ran, "always"); return nil }},
			step{"broken", true, func(context.Context, *hook.Request) error {
				if broken {
					return errors.New("not now")
				}
				return nil
			}},
		}
		b.fresh()
		require.Equal(t, taskmachine.Backoff, b.phase())
		require.Contains(t, b.runner.Status().State.Events[1].DisplayMessage, "not now")
		require.Equal(t, map[string]bool{"once": true}, b.stored().Done)
		broken = false
		b.after(2 * time.Second)
		require.Equal(t, taskmachine.Running, b.phase())
		require.Equal(t, []string{"once", "always", "always"}, ran)
	})
}

func TestHowAPreparationFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		kind string
		ends taskmachine.Phase
	}{
		"any error": {errors.New("x"), drover.TaskSetupFailure, taskmachine.Backoff},
		"a download, to be repeated": {&hook.Failure{
			Type: drover.TaskDownloadFailed, Recoverable: true, Err: errors.New("x"),
		}, drover.TaskDownloadFailed, taskmachine.Backoff},
		"for good": {&hook.Failure{
			Type: drover.TaskFailedValidation, Err: errors.New("x"),
		}, drover.TaskFailedValidation, taskmachine.Dead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, b *bundle) {
				b.shared.Hooks = []hook.Prestart{step{"h", false, func(context.Context, *hook.Request) error { return c.err }}}
				b.fresh()
				require.Equal(t, c.ends, b.phase())
				require.Equal(t, c.kind, b.runner.Status().State.Events[1].Type)
				require.Empty(t, b.world.Journal(), "nothing was started")
				require.Empty(t, b.shared.Slots, "no place is kept")
			})
		})
	}
}

func TestADriverThatIsNotThere(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		delete(b.shared.Drivers, "fake")
		b.fresh()
		require.Equal(t, taskmachine.Dead, b.phase(), "another try changes nothing")
		require.Contains(t, b.history(), drover.TaskDriverFailure)
	})
}

func TestHowAStartFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		ends taskmachine.Phase
	}{
		"for good":       {errors.New("no such image"), taskmachine.Dead},
		"to be repeated": {&driver.StartError{Recoverable: true, Err: errors.New("busy")}, taskmachine.Backoff},
		"said for good":  {&driver.StartError{Err: errors.New("bad")}, taskmachine.Dead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, b *bundle) {
				var ids []string
				b.world.OnStart = func(_ context.Context, s driver.Spec) error {
					ids = append(ids, s.ID)
					return c.err
				}
				b.fresh()
				require.Equal(t, c.ends, b.phase())
				require.Empty(t, b.runner.Record().Intent, "the start is over")
				require.Empty(t, b.shared.Slots)
				if c.ends == taskmachine.Backoff {
					b.world.OnStart = nil
					b.after(2 * time.Second)
					require.Equal(t, taskmachine.Running, b.phase())
					require.NotEqual(t, ids[0], b.world.Running("main").Spec.ID)
				}
			})
		})
	}
}

func TestAKillEndsThePreparation(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Hooks = []hook.Prestart{step{"slow", false, func(ctx context.Context, _ *hook.Request) error {
			<-ctx.Done()
			return ctx.Err()
		}}}
		b.fresh()
		require.Equal(t, taskmachine.Preparing, b.phase())
		require.Len(t, b.shared.Slots, 1)
		b.apply(taskmachine.Kill{})
		require.Equal(t, taskmachine.Dead, b.phase())
		require.Empty(t, b.shared.Slots)
		require.Empty(t, b.world.Journal())
	})
}

func TestAKillEndsAStartUnderWay(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.world.OnStart = func(ctx context.Context, _ driver.Spec) error {
			<-ctx.Done()
			return ctx.Err()
		}
		b.fresh()
		require.Equal(t, taskmachine.Starting, b.phase())
		b.apply(taskmachine.Kill{})
		require.Equal(t, taskmachine.Dead, b.phase())
		require.Empty(t, b.shared.Slots)
	})
}

func TestADownloadKeepsNobodyFromStarting(t *testing.T) {
	t.Parallel()
	for name, artifacts := range map[string][]*drover.TaskArtifact{"none": nil, "one": {{GetterSource: "http://x"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, b *bundle) {
				b.cfg.Task.Artifacts = artifacts
				proceed := make(chan struct{})
				b.shared.Hooks = []hook.Prestart{step{"download", false, func(context.Context, *hook.Request) error { <-proceed; return nil }}}
				b.fresh()
				require.Len(t, b.shared.Slots, 1-len(artifacts))
				close(proceed)
				b.settle()
				require.Equal(t, taskmachine.Running, b.phase())
			})
		})
	}
}

func TestStartsWaitForAPlace(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Slots <- struct{}{}
		b.shared.Slots <- struct{}{}
		b.fresh()
		b.after(time.Hour)
		require.Equal(t, taskmachine.Preparing, b.phase())
		<-b.shared.Slots
		b.settle()
		require.Equal(t, taskmachine.Running, b.phase())
		require.Len(t, b.shared.Slots, 1, "it gave its place back")
	})
}

func TestTheShutdownDelay(t *testing.T) {
	t.Parallel()
	for name, hurry := range map[string]bool{"is waited for": false, "ends when somebody hurries": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, b *bundle) {
				b.cfg.Task.ShutdownDelay = 10 * time.Second
				b.fresh()
				b.apply(taskmachine.Kill{})
				b.after(9 * time.Second)
				require.NotNil(t, b.world.Running("main"))
				if hurry {
					b.runner.Hurry()
					b.settle()
				} else {
					b.after(time.Second)
				}
				require.Nil(t, b.world.Running("main"))
				require.Equal(t, taskmachine.Dead, b.phase())
			})
		})
	}
}

// refusing is a driver whose tasks refuse to be stopped some times.
type refusing struct {
	driver.Driver
	times int
}

type refusingHandle struct {
	driver.Handle
	d *refusing
}

func (d *refusing) Start(ctx context.Context, s driver.Spec) (driver.Handle, error) {
	h, err := d.Driver.Start(ctx, s)
	return refusingHandle{h, d}, err
}

func (h refusingHandle) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	if h.d.times > 0 {
		h.d.times--
		return errors.New("the kernel is busy")
	}
	return h.Handle.Stop(ctx, signal, timeout)
}

func TestAStopThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Drivers["fake"] = &refusing{b.world, 2}
		b.fresh()
		b.apply(taskmachine.Kill{})
		require.Equal(t, taskmachine.Stopping, b.phase())
		require.Contains(t, b.last().DisplayMessage, "the kernel is busy")
		b.after(5 * time.Second)
		require.Equal(t, taskmachine.Stopping, b.phase(), "the second try fails too")
		b.after(20 * time.Second)
		require.Equal(t, taskmachine.Dead, b.phase())
	})
}

func TestATaskThatEndsMeanwhileIsNotStoppedAnyMore(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Drivers["fake"] = &refusing{b.world, 1000}
		b.fresh()
		b.apply(taskmachine.Kill{})
		b.world.Running("main").End(driver.Exit{})
		b.settle()
		require.Equal(t, taskmachine.Dead, b.phase())
		count := len(b.runner.Status().State.Events)
		b.after(time.Hour)
		require.Len(t, b.runner.Status().State.Events, count, "nobody tries on")
	})
}

// networks gives a namespace, or the error.
type networks struct{ err error }

func (n networks) Join(context.Context, *drover.Allocation, *drover.TaskGroup, *drover.Task) (*driver.NetNS, error) {
	return &driver.NetNS{}, n.err
}
func (networks) Status(string) *network.Status       { return nil }
func (networks) Leave(context.Context, string) error { return nil }

func TestATaskJoinsTheNetworkOfItsGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		ends taskmachine.Phase
	}{
		"there":          {nil, taskmachine.Running},
		"lost for good":  {drover.Errorf(drover.Conflict, "its holder is gone"), taskmachine.Dead},
		"not yet or so":  {drover.Errorf(drover.Unavailable, "no addresses"), taskmachine.Backoff},
		"any other ways": {errors.New("x"), taskmachine.Backoff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, b *bundle) {
				b.shared.Networks = networks{c.err}
				b.fresh()
				require.Equal(t, c.ends, b.phase())
				if c.err == nil {
					require.NotNil(t, b.world.Running("main").Spec.NetNS)
				}
			})
		})
	}
}

func TestMessagesOfHooksAndDriverGoIntoTheHistory(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.shared.Hooks = []hook.Prestart{step{"h", false, func(_ context.Context, r *hook.Request) error {
			r.Emit(taskmachine.NewEvent(drover.TaskDownloading, "one"))
			return nil
		}}}
		b.world.OnStart = func(_ context.Context, s driver.Spec) error {
			s.Tell("pulling")
			return nil
		}
		b.fresh()
		require.Equal(t, "Received, Downloading Artifacts, Driver, Started", b.history())
	})
}

func TestTheTaskOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		b.leave()
		b.settle()
		require.Equal(t, taskmachine.Running, b.phase(), "no end was reported")
		require.NotNil(t, b.world.Running("main"))
		require.Equal(t, []string{"start main"}, b.world.Journal())
	})
}

func TestUsageIsPublishedWhileTheTaskRuns(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		published := 0
		b.shared.Publish = func(_ *drover.Allocation, task string, m driver.Meter) *hook.Stats {
			return &hook.Stats{
				Meter: m, Clock: b.shared.Clock, Interval: time.Second, Log: b.shared.Log,
				Update: func(*usage.TaskResourceUsage) { published++ },
			}
		}
		b.fresh()
		b.after(3500 * time.Millisecond)
		require.Positive(t, published)
		b.world.Running("main").End(driver.Exit{})
		b.settle()
		before := published
		b.after(time.Minute)
		require.Equal(t, before, published)
	})
}
