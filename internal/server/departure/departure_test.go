package departure

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steps are what happened, one after the other.
type steps struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (s *steps) add(what string) { s.mu.Lock(); defer s.mu.Unlock(); s.list = append(s.list, what) }

// cluster notes what it is told. Leaving fails.
type cluster struct{ *steps }

func (c cluster) Leave(ctx context.Context) error {
	if ctx.Err() == nil {
		c.add("leaves the cluster")
	}
	return errors.New("nobody answers")
}

func (c cluster) HandOver(ctx context.Context) {
	if ctx.Err() == nil {
		c.add("hands over")
	}
}

// node notes the drain.
type node struct{ *steps }

func (n node) Leave(ctx context.Context, spec drover.DrainSpec) error {
	if ctx.Err() == nil {
		n.add("drains for " + spec.Deadline.String())
	}
	return errors.New("not to the end")
}

// signalled is the end of a process by a signal.
type signalled struct{ by os.Signal }

func (s signalled) Error() string     { return "ended by " + s.by.String() }
func (s signalled) Signal() os.Signal { return s.by }

// The node is drained first, then the server leaves, and only then the rest ends. Each is done only where the configuration wants it for
// the signal.
func TestHowAnAgentGoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause            error
		clustered, drain bool
		want             []string
	}{
		"interrupted, as it should leave":   {signalled{syscall.SIGINT}, true, true, []string{"drains for 1m0s", "leaves the cluster"}},
		"terminated, as it should stay":     {signalled{syscall.SIGTERM}, true, true, []string{"hands over"}},
		"ended by an error":                 {errors.New("broken"), true, true, []string{"hands over"}},
		"without a drain":                   {signalled{syscall.SIGINT}, true, false, []string{"leaves the cluster"}},
		"a node without a server":           {signalled{syscall.SIGINT}, false, true, []string{"drains for 1m0s"}},
		"a node whose server is alone ends": {signalled{syscall.SIGTERM}, false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var did steps
			cfg := config.Default()
			cfg.LeaveOnInterrupt = new(true)
			if c.drain {
				cfg.Client.Drain = &config.DrainOnEnd{Deadline: "1m"}
			}
			d := Departure{Config: cfg, Node: node{&did}, Log: slog.New(slog.DiscardHandler)}
			if c.clustered {
				d.Cluster = cluster{&did}
			}
			ctx, end := context.WithCancelCause(t.Context())
			out, stop := d.Context(ctx)
			defer stop()
			require.NoError(t, out.Err())
			end(c.cause)
			<-out.Done()
			require.Equal(t, c.cause, context.Cause(out))
			require.Equal(t, c.want, did.list)
		})
	}
}

// Without anything to do before, the context is the same, and a departure that was not needed leaves nothing behind.
func TestNothingToDoBefore(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithTimeout(t.Context(), time.Hour)
	defer end()
	out, stop := Departure{Config: config.Default(), Node: node{&steps{}}}.Context(ctx)
	stop()
	require.True(t, ctx == out)
	var did steps
	out, stop = Departure{Config: config.Default(), Cluster: cluster{&did}}.Context(ctx)
	stop()
	<-out.Done()
	end()
	require.Empty(t, did.list)
}
