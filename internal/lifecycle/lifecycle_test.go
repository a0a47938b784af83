package lifecycle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal notes what parts do, in order.
type journal struct {
	mu    sync.Mutex
	lines []string // guarded by mu
	cause error    // guarded by mu; of the last end
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// until is a part that lives until it is stopped.
func (j *journal) until(name string) Part {
	return Part{Name: name, Run: func(ctx context.Context) error {
		j.note("start " + name)
		<-ctx.Done()
		j.note("stop " + name)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.cause = context.Cause(ctx)
		return ctx.Err()
	}}
}

// The last ring stops first, and the next one only when it is gone.
func TestRingsStopOneAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var g Group
		g.Ring(j.until("log"))
		g.Ring(j.until("loops"))
		g.Ring(j.until("faces"))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }() // ends with stop
		synctest.Wait()
		require.ElementsMatch(t, []string{"start log", "start loops", "start faces"}, j.lines)
		stop()
		require.NoError(t, <-ended, "it was asked to stop")
		require.Equal(t, []string{"stop faces", "stop loops", "stop log"}, j.lines[3:])
		require.ErrorIs(t, j.cause, ErrShutdown)
	})
}

// A part that fails stops all others, which hear why; so does one that ends by itself.
func TestOnePartStopsAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"fails":          {broken, "loops: the disk is gone"},
		"ends by itself": {nil, "loops ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var j journal
				var g Group
				g.Ring(j.until("log"))
				g.Ring(Part{Name: "loops", Run: func(context.Context) error { return c.err }}, j.until("beside"))
				g.Ring(j.until("faces"))
				err := g.Run(t.Context())
				require.EqualError(t, err, c.says)
				require.Equal(t, err, j.cause)
				if c.err != nil {
					require.ErrorIs(t, err, c.err)
				}
				require.Equal(t, "stop log", j.lines[len(j.lines)-1])
			})
		})
	}
}

// The first failure counts; what fails while it is stopped does not hide it.
func TestTheFirstFailureCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, later := errors.New("first"), errors.New("later")
		var g Group
		g.Ring(Part{Name: "slow", Run: func(ctx context.Context) error { <-ctx.Done(); return later }})
		g.Ring(Part{Name: "quick", Run: func(context.Context) error { return first }})
		require.ErrorIs(t, g.Run(t.Context()), first)
		var empty Group
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, empty.Run(ctx))
	})
}
