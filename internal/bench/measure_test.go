package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// measured is a bench whose agent is a fake with these answers; its own process stands in for the agent's.
func measured(t *testing.T, answers map[string]string) (b *bench, fake *clitest.API, out, errs *bytes.Buffer) {
	t.Helper()
	fake, out, errs = clitest.Serve(t, answers), &bytes.Buffer{}, &bytes.Buffer{}
	c, err := client.New(fake.Address())
	require.NoError(t, err)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	b = &bench{
		app: &term.App{Out: out, Err: errs, Clock: clock.Wall{}}, client: c, api: newAPI(fake.Address()), now: clock.Wall{}.Now,
		agent: &exec.Cmd{Process: self, Args: []string{"", "", "", "", "/no/such/folder"}},
	}
	return b, fake, out, errs
}

// program answers an execution with these messages, binary ones if they begin with a stream's number.
func program(messages ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return // the client tells
		}
		defer c.CloseNow() // nothing is left to be said
		if _, _, err := c.Read(r.Context()); err != nil {
			return
		}
		for _, m := range messages {
			kind := websocket.MessageText
			if m[0] < ' ' {
				kind = websocket.MessageBinary
			}
			_ = c.Write(r.Context(), kind, []byte(m)) // the client may be gone
		}
		_ = c.Close(websocket.StatusNormalClosure, "") // the client may have closed it
	}
}

const receipt = `{"type": "receipt", "receipt": {"cause": "exited"}}`

func TestAnExecutionIsTimed(t *testing.T) {
	t.Parallel()
	b, fake, _, _ := measured(t, nil)
	fake.Handle("GET /v1/runner/r1/execute", program("\x01one\n", "\x02two\n", receipt))
	at := time.Unix(0, 0)
	b.now = func() time.Time { at = at.Add(time.Second); return at }
	got, err := b.execute(t.Context(), "r1", "cat")
	require.NoError(t, err)
	require.Equal(t, timing{
		first: time.Second, end: 2 * time.Second, out: 8, text: "one\ntwo\n",
		receipt: &execution.Receipt{Cause: execution.CauseExited},
	}, got)
	_, err = b.follow(t.Context(), "r1", func(execution.Frame) error { return io.ErrShortWrite }, []string{"cat"})
	require.ErrorIs(t, err, io.ErrShortWrite)
	fake.Handle("GET /v1/runner/r1/execute", program("\x01one\n"))
	_, err = b.execute(t.Context(), "r1", "cat")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it broke before its receipt")
	_, err = b.execute(t.Context(), "gone", "cat")
	require.Error(t, err)
}

// TestACycleChecksItsOutput: a figure of cycles that lost output would be worth nothing.
func TestACycleChecksItsOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages []string
		ok       bool
		says     string
	}{
		"whole":            {[]string{"\x01r1\n", receipt}, true, ""},
		"another's":        {[]string{"\x01r2\n", receipt}, false, `lost output: runner r1 printed "r2\n"`},
		"none":             {[]string{receipt}, false, `printed ""`},
		"a failed command": {[]string{"\x01r1\n", strings.Replace(receipt, "exited\"", "exited\", \"exitCode\": 1", 1)}, false, "lost output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, fake, _, errs := measured(t, map[string]string{
				"POST /v1/runners": `{"id": "r1"}`, "POST /v1/runner/r1/files": `{}`, "DELETE /v1/runner/r1": `{}`,
			})
			fake.Handle("GET /v1/runner/r1/execute", program(c.messages...))
			ok, err := b.cycle(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.ok, ok)
			require.Contains(t, errs.String(), c.says)
			require.Contains(t, strings.Join(fake.Asked(), "\n"), "DELETE /v1/runner/r1", "it is released in any case")
		})
	}
	b, fake, _, _ := measured(t, map[string]string{"POST /v1/runners": `! 503 {"code": "exhausted", "message": "no runner came"}`})
	_, err := b.cycle(t.Context())
	require.ErrorContains(t, err, "no runner came")
	fake.Set("POST /v1/runners", `{"id": "r1"}`)
	_, err = b.cycle(t.Context())
	require.Error(t, err, "its files are refused")
}

func TestJobsAreRegisteredAndAwaited(t *testing.T) {
	t.Parallel()
	b, fake, _, _ := measured(t, map[string]string{
		"PUT /v1/jobs": `{}`,
		"GET /v1/job/x/summary": `{"Summary": {"g": {"Starting": 2}}}
---
{"Summary": {"g": {"Running": 2}}, "CreateIndex": 10, "ModifyIndex": 14}`,
	})
	require.NoError(t, b.register(t.Context(), sleepers("x", 2)))
	require.NoError(t, b.await(t.Context(), "x", func(s drover.TaskGroupSummary) bool { return s.Running == 2 }))
	asked := strings.Join(fake.Asked(), "\n")
	require.Contains(t, asked, `"/bin/sleep"`)
	require.Contains(t, asked, `"Count":2`)
	require.Contains(t, asked, "summary?index=0&wait=30s")
	require.Contains(t, asked, "summary?index=7&wait=30s", "it blocks until something is newer")
	n, err := b.entries(t.Context(), "x")
	require.NoError(t, err)
	require.InDelta(t, 5, n, 0)
	fake.Set("GET /v1/job/x/summary", "! 500 broken")
	require.ErrorContains(t, b.await(t.Context(), "x", nil), "broken")
	_, err = b.entries(t.Context(), "x")
	require.ErrorContains(t, err, "broken")
}

func TestWhatADriverLacks(t *testing.T) {
	t.Parallel()
	b, fake, _, _ := measured(t, map[string]string{"GET /v1/nodes": `[{"Drivers": {
		"docker": {"Detected": true, "HealthDescription": "no daemon"}, "sandbox": {"Detected": true, "Healthy": true}}}]`})
	for driver, want := range map[string]string{"docker": "no daemon", "sandbox": "", "qemu": "there is no such driver"} {
		why, err := b.lacks(t.Context(), driver)
		require.NoError(t, err)
		require.Equal(t, want, why)
	}
	fake.Set("GET /v1/nodes", "! 500 broken")
	_, err := b.lacks(t.Context(), "docker")
	require.ErrorContains(t, err, "broken")
}

func TestAnEnvironmentIsAwaited(t *testing.T) {
	t.Parallel()
	b, fake, _, _ := measured(t, map[string]string{
		"PUT /v1/environment/bench": `{}`, "GET /v1/environment/bench/pool": `{"size": 3, "warm": 3}`,
	})
	b.image, b.driver = "busybox", "docker"
	require.NoError(t, b.environment(t.Context(), "bench", 3))
	require.Contains(t, fake.Asked()[0], `"image":"busybox","driver":"docker","poolSize":3`)
	fake.Set("PUT /v1/environment/bench", `! 400 {"code": "invalid", "message": "no such driver"}`)
	require.ErrorContains(t, b.environment(t.Context(), "bench", 3), "no such driver")
}

func TestRepetitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b             bench
		repeats, pool int
	}{{bench{}, 400, 50}, {bench{quick: true}, 40, 50}, {bench{few: true}, 10, 5}} {
		require.Equal(t, c.repeats, c.b.n(400))
		require.Equal(t, c.pool, c.b.pool(50))
	}
}

func TestFiguresAreTold(t *testing.T) {
	t.Parallel()
	b, _, out, _ := measured(t, nil)
	b.prefix = "docker: "
	b.report("claim p50", 0.25, "ms", "≤ 1", "")
	before := b.spent()
	b.reportSpent(before, 10)
	require.NoError(t, b.table())
	require.Contains(t, out.String(), `{"figure":"docker: claim p50","value":0.25,"unit":"ms","goal":"≤ 1"}`+"\n")
	require.Regexp(t, `(?m)^docker: claim p50 +0\.25 ms +≤ 1`, out.String())
	require.Regexp(t, `(?m)^docker: CPU a cycle, all +`, out.String())
	out.Reset()
	require.NoError(t, printPublished(b.app))
	require.Contains(t, out.String(), "compare the orders of magnitude")
	require.Len(t, b.runnerParts(), 6)
}

// TestProcessesAreMeasured looks at this one and at its parent.
func TestProcessesAreMeasured(t *testing.T) {
	t.Parallel()
	self := os.Getpid()
	require.Positive(t, memoryMB(self, "VmRSS"))
	require.Zero(t, memoryMB(self, "VmNope"))
	require.Zero(t, memoryMB(-1, "VmRSS"))
	require.Positive(t, privateMB([]int{self}))
	require.Zero(t, privateMB(nil))
	require.InDelta(t, privateMB([]int{self})/2, privateMB([]int{self, -1}), privateMB([]int{self}), "a process that ended weighs nothing")
	own, children := cpuTimes(self)
	require.GreaterOrEqual(t, own, 0.0)
	require.GreaterOrEqual(t, children, 0.0)
	require.Zero(t, cpuSeconds(-1))
	require.True(t, inherits(self, os.Getppid()))
	require.False(t, inherits(self, self))
	require.False(t, inherits(-1, self))
	b, _, _, _ := measured(t, nil)
	require.NotContains(t, b.supervisors(t.Context()), self)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.GreaterOrEqual(t, b.cpuOver(ended, time.Hour), 0.0, "who is interrupted waits for nothing")
}

func TestTheSizeOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1_500_000), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "b"), make([]byte, 500_000), 0o600))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	require.InDelta(t, 2, folderMB(dir), 1e-9)
	require.Zero(t, folderMB(filepath.Join(dir, "none")))
}

func TestPercentilesAreOfTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 1000).Draw(t, "ms")) * time.Millisecond
		}), 1, 20).Draw(t, "list")
		low, high := percentile(list, 0.1), percentile(list, 0.9)
		require.LessOrEqual(t, low, high)
		require.Contains(t, list, time.Duration(low*1e6))
		require.Contains(t, list, time.Duration(high*1e6))
		slowest := percentile(list, 1)
		for _, d := range list {
			require.LessOrEqual(t, float64(d)/1e6, slowest)
		}
	})
}
