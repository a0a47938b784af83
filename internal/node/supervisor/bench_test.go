package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// built launches the real drover-init, as make init built it.
func built(b *testing.B) *Client {
	b.Helper()
	binary, err := Binary(b.TempDir())
	require.NoError(b, err)
	c, _ := launch(b, func(cfg *LaunchConfig) { cfg.Binary = binary })
	return c
}

func once(ctx context.Context, c *Client, spec execution.Spec) (n int64, err error) {
	s, err := c.StartExecution(ctx, spec)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += int64(len(f.Data))
	}
}

var trueSpec = execution.Spec{Argv: []string{"/bin/true"}}

func BenchmarkTrue(b *testing.B) {
	c := built(b)
	for b.Loop() {
		_, err := once(b.Context(), c, trueSpec)
		require.NoError(b, err)
	}
}

// BenchmarkTrueFifty is one of fifty at once.
func BenchmarkTrueFifty(b *testing.B) {
	c := built(b)
	var wg sync.WaitGroup
	work := make(chan struct{})
	for range 50 {
		wg.Go(func() { // ends when work is closed
			for range work {
				if _, err := once(b.Context(), c, trueSpec); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
}

func BenchmarkFirstByte(b *testing.B) {
	c := built(b)
	spec := execution.Spec{Argv: []string{"/bin/echo", "x"}}
	for b.Loop() {
		s, err := c.StartExecution(b.Context(), spec)
		require.NoError(b, err)
		for {
			f, err := s.Next(b.Context())
			require.NoError(b, err)
			if len(f.Data) > 0 {
				break
			}
		}
		b.StopTimer()
		collect(b, s)
		b.StartTimer()
	}
}

func BenchmarkOutput(b *testing.B) {
	c := built(b)
	const size = 64 << 20
	b.SetBytes(size)
	for b.Loop() {
		n, err := once(b.Context(), c, execution.Spec{Argv: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}})
		require.NoError(b, err)
		require.Equal(b, int64(size), n)
	}
}

func BenchmarkLaunch(b *testing.B) {
	binary, err := Binary(b.TempDir())
	require.NoError(b, err)
	for b.Loop() {
		cfg := LaunchConfig{Binary: binary, ID: "b", StateDir: b.TempDir(), WorkDir: "/"}
		c, err := Launch(b.Context(), cfg, options())
		require.NoError(b, err)
		require.NoError(b, c.Shutdown(b.Context()))
		_ = c.Close()
	}
}

// BenchmarkIdleMemory reports what an idle supervisor has for itself, fresh and after a hundred executions.
func BenchmarkIdleMemory(b *testing.B) {
	c := built(b)
	for b.Loop() {
		b.ReportMetric(private(b, c.Pid()), "fresh-KiB")
		for range 100 {
			_, err := once(b.Context(), c, trueSpec)
			require.NoError(b, err)
		}
		b.ReportMetric(private(b, c.Pid()), "used-KiB")
		require.True(b, clock.Sleep(b.Context(), clock.Wall{}, 3*time.Second))
		b.ReportMetric(private(b, c.Pid()), "idle-again-KiB")
	}
}

// private sums the anonymous memory: all that is not a page of the program's file, which its siblings share.
func private(b *testing.B, pid int) (kib float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		var n float64
		if _, err := fmt.Sscanf(line, "Anonymous: %f kB", &n); err == nil {
			kib += n
		}
	}
	return kib
}
