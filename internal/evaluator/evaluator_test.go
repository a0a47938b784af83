package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) {
	Child(testFuncs())
	goleak.VerifyTestMain(m)
}

// testFuncs are what evaluated texts might do, and what they must not be able to.
func testFuncs() map[string]Func {
	said := func(err error) ([]byte, error) { return []byte(fmt.Sprint(err)), nil }
	return map[string]Func{
		"echo":   func(r []byte) ([]byte, error) { return r, nil },
		"pid":    func([]byte) ([]byte, error) { return []byte(fmt.Sprint(os.Getpid())), nil },
		"refuse": func(r []byte) ([]byte, error) { return nil, drover.Errorf(drover.Invalid, "no: %s", r) },
		"panic":  func([]byte) ([]byte, error) { panic("a fault") },
		"memory": func([]byte) ([]byte, error) {
			for text := "x"; ; text += text {
				_ = text
			}
		},
		"pieces": func([]byte) ([]byte, error) {
			for kept := [][]byte{}; ; {
				kept = append(kept, make([]byte, 100_000))
			}
		},
		"stack":  func([]byte) ([]byte, error) { return []byte(fmt.Sprint(deeper(1))), nil },
		"spin":   func([]byte) ([]byte, error) { return []byte(fmt.Sprint(spin())), nil },
		"sleep":  func([]byte) ([]byte, error) { <-make(chan int); return nil, nil },
		"large":  func([]byte) ([]byte, error) { return make([]byte, 3<<20), nil },
		"open":   func([]byte) ([]byte, error) { _, err := os.Open("/etc/passwd"); return said(err) },
		"dial":   func([]byte) ([]byte, error) { _, err := net.Dial("tcp", "127.0.0.1:1"); return said(err) },
		"exec":   func([]byte) ([]byte, error) { return said(exec.Command("/bin/true").Run()) },
		"kill":   func([]byte) ([]byte, error) { return said(unix.Kill(os.Getppid(), 0)) },
		"parent": func([]byte) ([]byte, error) { return said(unix.PtraceAttach(1)) },
		"environment": func([]byte) ([]byte, error) {
			return []byte(strings.Join(os.Environ(), " ")), nil
		},
	}
}

func deeper(n int) int {
	var room [1000]int
	room[n%1000] = deeper(n + 1) //nolint:staticcheck // it is meant not to end
	return room[(n+1)%1000] + room[n%1000]
}

func spin() (n int) {
	for time.Now().Year() > 0 {
		n++
	}
	return n
}

func children(t testing.TB, change func(*Config)) *Children {
	t.Helper()
	sharetest.Take(t) // children compute as long as their limits allow
	cfg := Config{
		What: "the text", Limits: Limits{Memory: 64 << 20, CPU: time.Minute, Wall: time.Minute, Answer: 2 << 20},
		Workers: 2, Waiting: 1000, Idle: time.Minute, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	p := New(cfg)
	t.Cleanup(p.Close)
	return p
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	p := children(t, nil)
	for _, text := range []string{"", "a", "\x00\xff", strings.Repeat("long", 400_000)} {
		got, err := p.Evaluate(t.Context(), "echo", []byte(text))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	_, err := p.Evaluate(t.Context(), "refuse", []byte("x"))
	require.EqualError(t, err, "no: x")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, err = p.Evaluate(t.Context(), "panic", nil)
	require.EqualError(t, err, "evaluating the text: a fault")
	_, err = p.Evaluate(t.Context(), "nothing", nil)
	require.ErrorContains(t, err, `no function "nothing"`)
}

func TestLimitsHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		what   string
		change func(*Config)
		says   string
	}{
		"memory": {"memory", nil, "the text needs more than 64 MB of memory to evaluate"},
		"pieces": {"pieces", nil, "the text needs more than 64 MB of memory to evaluate"},
		"stack":  {"stack", nil, "the text needs more than 64 MB of memory to evaluate"},
		"cpu":    {"spin", func(c *Config) { c.Limits.CPU = time.Second }, "the text takes longer than 1s of processor time to evaluate"},
		"wall":   {"sleep", func(c *Config) { c.Limits.Wall = time.Second }, "the text takes longer than 1s to evaluate"},
		"answer": {"large", nil, "the text becomes larger than 2 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := children(t, c.change)
			_, err := p.Evaluate(t.Context(), c.what, nil)
			require.EqualError(t, err, c.says)
			require.Equal(t, drover.TooLarge, drover.CodeOf(err))
			got, err := p.Evaluate(t.Context(), "echo", []byte("next"))
			require.NoError(t, err)
			require.Equal(t, "next", string(got))
		})
	}
}

func TestChildReachesNothing(t *testing.T) {
	t.Parallel()
	p := children(t, nil)
	for _, name := range []string{"open", "dial", "exec", "kill", "parent"} {
		got, err := p.Evaluate(t.Context(), name, nil)
		require.NoError(t, err)
		require.Contains(t, string(got), "operation not permitted", name)
	}
	got, err := p.Evaluate(t.Context(), "environment", nil)
	require.NoError(t, err)
	require.Equal(t, "GOMAXPROCS=2 GOTRACEBACK=none", string(got))
}

func TestCancelledOneIsKilled(t *testing.T) {
	t.Parallel()
	p := children(t, nil)
	_, err := p.Evaluate(t.Context(), "pid", nil)
	require.NoError(t, err)
	child := p.idle[0].cmd.Process.Pid
	gone := errors.New("the client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	clock.Wall{}.AfterFunc(100*time.Millisecond, func() { cancel(gone) }) // whenever it comes, the result is the same
	_, err = p.Evaluate(ctx, "spin", nil)
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, unix.Kill(child, 0), unix.ESRCH, "it was waited for as well")
}

func TestDeadIdleChildIsReplaced(t *testing.T) {
	t.Parallel()
	p := children(t, nil)
	_, err := p.Evaluate(t.Context(), "echo", nil)
	require.NoError(t, err)
	w := p.idle[0]
	require.NoError(t, w.cmd.Process.Kill())
	require.NoError(t, unix.Waitid(unix.P_PID, w.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	got, err := p.Evaluate(t.Context(), "echo", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
}

func TestMoreThanMayWaitAreRefused(t *testing.T) {
	t.Parallel()
	p := children(t, func(c *Config) { c.Workers, c.Waiting = 1, 1 })
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	for range 2 {
		g.Go(func() {
			_, err := p.Evaluate(ctx, "sleep", nil)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.waiting == 1
	}, time.Minute, time.Millisecond)
	_, err := p.Evaluate(t.Context(), "echo", nil)
	require.EqualError(t, err, "1 others wait for the text of theirs to be evaluated: try again later")
	require.Equal(t, drover.RateLimited, drover.CodeOf(err))
	cancel()
	g.Wait()
}

func TestOneChildStays(t *testing.T) {
	t.Parallel()
	p := children(t, func(c *Config) { c.Idle = time.Millisecond })
	var g sync.WaitGroup
	for range 20 {
		g.Go(func() {
			_, err := p.Evaluate(t.Context(), "echo", nil)
			require.NoError(t, err)
		})
	}
	g.Wait()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle) == 1 && p.trim == nil
	}, time.Minute, time.Millisecond)
}

func TestRefusesOnceClosed(t *testing.T) {
	t.Parallel()
	p := children(t, nil)
	p.Warm()
	p.Close()
	_, err := p.Evaluate(t.Context(), "echo", nil)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	got, err := Unpack(Pack("a", "", "\xff"), 3)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "", "\xff"}, got)
	for _, wrong := range []string{"\x00", "\x00\x00\x00\x02a", "\xff\xff\xff\xff"} {
		_, err = Unpack([]byte(wrong), 0)
		require.Error(t, err)
	}
	_, err = Unpack(nil, 1)
	require.Error(t, err)
}

func BenchmarkEvaluate(b *testing.B) {
	p := children(b, nil)
	for b.Loop() {
		if _, err := p.Evaluate(b.Context(), "echo", []byte("x")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	p := children(b, nil)
	for b.Loop() {
		w, err := start(p.cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		w.end()
		b.StartTimer()
	}
}
