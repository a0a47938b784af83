package agent

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
)

// drains is control that drains.
type drains struct {
	*control
	mu    sync.Mutex
	asked []*drover.DrainSpec // nil of a node that is back; guarded by mu
	err   error

	stands  bool // nobody is answered
	waiting int  // guarded by mu
}

func (d *drains) waits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting
}

func (d *drains) DrainSelf(ctx context.Context, _ string, spec *drover.DrainSpec) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stands {
		d.waiting++
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		return context.Cause(ctx)
	}
	d.asked = append(d.asked, spec)
	return d.err
}

// A node that leaves waits for what its drain is about, and is back when its agent is.
func TestANodeLeavesAndComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		d := &drains{control: b.control}
		b.signs = d
		b.start()
		one, system := b.alloc(1, "service"), b.alloc(2, "system")
		b.control.assign(one, system)
		sleep(time.Second)
		left := make(chan error, 1)
		spec := drover.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}
		go func() { left <- b.agent.Leave(t.Context(), spec) }() // ends with the test
		sleep(10 * time.Minute)
		require.Empty(t, left, "the service runs")
		require.Equal(t, []*drover.DrainSpec{&spec}, d.asked)
		stopped := *one
		stopped.DesiredStatus, stopped.AllocModifyIndex = "stop", 2
		b.control.assign(&stopped, system)
		sleep(time.Minute)
		require.NoError(t, <-left)
		b.leave()

		d.err = drover.Errorf(drover.Unavailable, "no leader")
		b.start()
		sleep(time.Minute)
		require.Greater(t, len(d.asked), 2, "it says so until it is heard")
		require.Nil(t, d.asked[1])
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
		sleep(time.Minute)
		heard := len(d.asked)
		require.NoFileExists(t, b.agent.leftFile())
		sleep(time.Hour)
		b.leave()
		b.start()
		sleep(time.Minute)
		require.Len(t, d.asked, heard, "once")
		b.world.Running("t2").End(driver.Exit{})
		sleep(time.Second)
	})
}

// A signal that comes while the agent starts finds it without runners: what an earlier one left runs all the same.
func TestNothingIsDrainedBeforeItIsKnown(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		d := &drains{control: b.control}
		a, err := New(b.cfg, Deps{
			Controller: d, Drivers: []driver.Driver{b.world}, Clock: clock.Wall{}, IDs: id.Random{}, Log: slog.New(slog.DiscardHandler),
			State: b.state,
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, a.Leave(ctx, drover.DrainSpec{}), context.DeadlineExceeded)
		require.Empty(t, d.asked)
	})
}

// Control that has no leader just then is asked again: a node that leaves while servers are replaced would take its tasks with it.
func TestLeavingDuringAnElection(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		d := &drains{control: b.control}
		b.signs = d
		b.start()
		d.err = drover.Errorf(drover.NotLeader, "no leader")
		time.AfterFunc(10*time.Second, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.err = nil
		})
		require.NoError(t, b.agent.Leave(t.Context(), drover.DrainSpec{Deadline: time.Minute}))
	})
}

// What control does not stop does not keep the agent for ever, and a second wish ends the waiting.
func TestLeavingEnds(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		d := &drains{control: b.control}
		b.signs = d
		b.start()
		b.control.assign(b.alloc(1, "service"))
		sleep(time.Second)
		began := time.Now()
		require.ErrorIs(t, b.agent.Leave(t.Context(), drover.DrainSpec{Deadline: time.Minute}), context.DeadlineExceeded)
		require.Equal(t, time.Minute+30*time.Second+lastStops, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, b.agent.Leave(ctx, drover.DrainSpec{}), context.Canceled)
		d.err = drover.Errorf(drover.Unavailable, "no leader")
		began = time.Now()
		require.ErrorIs(t, b.agent.Leave(t.Context(), drover.DrainSpec{}), d.err)
		require.Equal(t, asking, time.Since(began), "an election would be over")
		b.world.Running("t1").End(driver.Exit{})
		sleep(time.Second)
		synctest.Wait()
	})
	t.Run("older control", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bundle) {
			b.start()
			require.Equal(t, drover.NotImplemented, drover.CodeOf(b.agent.Leave(t.Context(), drover.DrainSpec{})))
		})
	})
}

// A control that does not answer does not keep the agent, and one that is about to be told that the node is back is not told any more.
func TestLeavingWithoutControl(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		d := &drains{control: b.control}
		b.signs = d
		b.start()
		require.NoError(t, b.agent.Leave(t.Context(), drover.DrainSpec{}))
		b.leave()
		d.stands = true
		b.start()
		sleep(time.Second)
		require.Equal(t, 1, d.waits(), "the node says that it is back")
		began := time.Now()
		require.ErrorIs(t, b.agent.Leave(t.Context(), drover.DrainSpec{}), context.DeadlineExceeded)
		require.Equal(t, asking, time.Since(began))
		d.mu.Lock()
		d.stands = false
		d.mu.Unlock()
		sleep(time.Hour)
		require.Len(t, d.asked, 1, "nothing undoes that the node leaves")
	})
}
