package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/guest/server"
	"github.com/drover-project/drover/internal/sharetest"
)

// The test program is its own drover-init, so that the race detector watches both sides.
func TestMain(m *testing.M) {
	if os.Args[0] == processTitle {
		os.Exit(server.Main())
	}
	if len(os.Args) == 3 && os.Args[1] == agentMode {
		agent(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func options() Options { return Options{Clock: clock.Wall{}, Log: quiet()} }

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	return exe
}

// launch starts a supervisor that the test shuts down.
func launch(t testing.TB, change func(*LaunchConfig)) (*Client, string) {
	t.Helper()
	sharetest.Take(t)
	dir := t.TempDir()
	cfg := LaunchConfig{
		Binary: self(t), ID: "test", StateDir: filepath.Join(dir, "state"), WorkDir: dir,
		User: User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := Launch(t.Context(), cfg, options())
	require.NoError(t, err)
	t.Cleanup(func() {
		text := tail(filepath.Join(cfg.StateDir, initLog))
		require.Empty(t, text, "drover-init had something to say, perhaps about a race")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if last, err := Connect(ctx, SocketPath(cfg.StateDir), options()); err == nil {
			require.NoError(t, last.Shutdown(ctx))
			_ = last.Close()
		}
		_ = c.Close()
		select { // a killed one is not waited for, and goleak waits for half a second only
		case <-c.child.gone:
		case <-ctx.Done():
			t.Error("drover-init does not end")
		}
	})
	return c, cfg.StateDir
}

func sh(script string) execution.Spec {
	return execution.Spec{Argv: []string{"/bin/sh", "-c", script}}
}

// result is all that a session delivers.
type result struct {
	stdout, stderr []byte
	started        bool
	skipped        bool
	receipt        *execution.Receipt
}

func collect(t testing.TB, s execution.Session) result {
	t.Helper()
	var r result
	for {
		f, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return r
		}
		require.NoError(t, err)
		r.started = r.started || f.Started
		r.skipped = r.skipped || f.Skipped
		if f.Receipt != nil {
			r.receipt = f.Receipt
		}
		if f.Stream == execution.Stdout {
			r.stdout = append(r.stdout, f.Data...)
		} else {
			r.stderr = append(r.stderr, f.Data...)
		}
	}
}

func run(t testing.TB, c *Client, spec execution.Spec) result {
	t.Helper()
	s, err := c.StartExecution(t.Context(), spec)
	require.NoError(t, err)
	return collect(t, s)
}
