package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/sharetest"
)

// real is an agent with real processes, its state on disk.
type real struct {
	t       testing.TB
	data    string
	groups  *cgroup.Groups
	control *control
	agent   *Agent
	end     func()
}

func newReal(t testing.TB) *real {
	sharetest.Take(t)
	r := &real{t: t, data: t.TempDir(), control: newControl()}
	r.start()
	return r
}

func (r *real) start() {
	binary, err := supervisor.Binary(r.data)
	require.NoError(r.t, err)
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("DROVER_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	raw := rawexec.New(rawexec.Config{
		Enabled: true, Binary: binary, CoreMHz: 2000, Cgroups: r.groups, Clock: clock.Wall{}, Log: log,
		IdleDir: filepath.Join(r.data, "supervisor", ".idle"),
	})
	r.agent, err = New(Config{DataDir: r.data, GC: GCConfig{MaxAllocs: 10_000, DiskPercent: 101, InodePercent: 101}}, Deps{
		Controller: r.control, Clock: clock.Wall{}, IDs: id.Random{}, Log: log,
		Drivers: []driver.Driver{raw},
	})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.agent.Run(ctx) }() // ends with cancel
	ended := false
	r.end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		require.NoError(r.t, <-ran)
		require.NoError(r.t, raw.Close())
	}
	r.t.Cleanup(r.end)
}

// await waits until control heard that status of the allocation.
func (r *real) await(allocID, status string) *drover.Allocation {
	deadline := time.After(time.Minute)
	for {
		r.control.mu.Lock()
		a, heard := r.control.allocs[allocID], r.control.heard
		r.control.mu.Unlock()
		if a.ClientStatus == status {
			return a
		}
		select {
		case <-heard:
		case <-deadline:
			require.FailNow(r.t, "waiting for "+status, "%+v", a)
		}
	}
}

func rawAlloc(kind string, pool bool, config map[string]any) *drover.Allocation {
	j := &drover.Job{
		ID: "j", Type: kind, TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{Name: "t", Driver: "raw_exec", Config: config}}}},
	}
	if pool {
		j.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
	}
	j.Canonicalize()
	return &drover.Allocation{
		ID: id.Random{}.New(), Name: "j.g[0]", JobID: "j", Job: j, TaskGroup: "g", CreateTime: time.Now().UnixNano(),
		DesiredStatus: "run", ClientStatus: "pending", AllocModifyIndex: 1,
	}
}

func (r *real) stop(a *drover.Allocation) {
	stopped := *r.control.alloc(a.ID)
	stopped.DesiredStatus, stopped.AllocModifyIndex = "stop", stopped.AllocModifyIndex+1
	r.control.assign(&stopped)
}

func (r *real) logs(a *drover.Allocation, kind string) string {
	reader, err := r.agent.Logs(context.Background(), exchange.LogRequest{AllocID: a.ID, Task: "t", Type: kind, Follow: true})
	require.NoError(r.t, err)
	text := ""
	for {
		c, err := reader.Next(context.Background())
		if errors.Is(err, io.EOF) {
			require.NoError(r.t, reader.Close())
			return text
		}
		require.NoError(r.t, err)
		text += string(c.Data)
	}
}

func TestRealBatch(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	a := rawAlloc("batch", false, map[string]any{"command": "/bin/sh", "args": []any{
		"-c", "echo $NOMAD_TASK_NAME ${NOMAD_ALLOC_INDEX}; echo err >&2; cat local/../../alloc/x 2>/dev/null; exit 0",
	}})
	r.control.assign(a)
	r.await(a.ID, "complete")
	require.Equal(t, "t 0\n", r.logs(a, "stdout"))
	require.Equal(t, "err\n", r.logs(a, "stderr"))
	require.NoDirExists(t, filepath.Join(r.data, "supervisor", a.ID+".t"))
}

func TestRealTaskOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	gate := filepath.Join(t.TempDir(), "gate")
	lasting := rawAlloc("service", false, map[string]any{"command": "/bin/sh", "args": []any{"-c", "echo up; exec sleep 600"}})
	ending := rawAlloc("batch", false, map[string]any{"command": "/bin/sh", "args": []any{
		"-c", "while ! test -e " + gate + "; do sleep 0.05; done; exit 0",
	}})
	r.control.assign(lasting, ending)
	r.await(lasting.ID, "running")
	r.await(ending.ID, "running")
	r.end()
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	r.start()
	r.await(ending.ID, "complete")
	require.Equal(t, "running", r.control.alloc(lasting.ID).ClientStatus)
	require.Zero(t, r.control.alloc(lasting.ID).TaskStates["t"].Restarts)

	session, err := r.agent.StartExecution(context.Background(), lasting.ID, "", execution.Spec{Argv: []string{"/bin/echo", "hi"}})
	require.NoError(t, err)
	out, receipt := "", (*execution.Receipt)(nil)
	for receipt == nil {
		f, err := session.Next(context.Background())
		require.NoError(t, err)
		if f.Stream == execution.Stdout {
			out += string(f.Data)
		}
		receipt = f.Receipt
	}
	require.NoError(t, session.Close())
	require.Equal(t, "hi\n", out)
	require.Zero(t, receipt.ExitCode)
	u, err := r.agent.AllocStats(context.Background(), lasting.ID, "")
	require.NoError(t, err)
	require.Positive(t, u.Timestamp)
	r.stop(lasting)
	ended := r.await(lasting.ID, "complete")
	require.Equal(t, "dead", ended.TaskStates["t"].State)
	require.Equal(t, "up\n", r.logs(lasting, "stdout"))
}

func TestRealWarmRunner(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	a := rawAlloc("service", true, map[string]any{})
	r.control.assign(a)
	r.await(a.ID, "running")
	require.NoError(
		t, r.agent.Files(a.ID, "").Apply(context.Background(), []execution.FileChange{{Path: "x.txt", Write: true, Data: []byte("hello")}}),
	)
	list, err := r.agent.Files(a.ID, "").List(context.Background(), execution.FileRequest{Path: "."})
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range list {
		names[f.Path] = true
	}
	require.Contains(t, names, "x.txt", "%v", names)
	r.stop(a)
	r.await(a.ID, "complete")
}

func TestRealMissingCommand(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	a := rawAlloc("batch", false, map[string]any{"command": "/no/such/thing"})
	a.Job.TaskGroups[0].Tasks[0].RestartPolicy.Attempts = new(0)
	r.control.assign(a)
	failed := r.await(a.ID, "failed")
	events := failed.TaskStates["t"].Events
	require.Equal(t, drover.TaskDriverFailure, events[len(events)-2].Type)
}

// TestRealInterruptedStart: the agent was killed between a driver's start and the storing of its handle. The program runs
// already: it is found, not started a second time.
func TestRealInterruptedStart(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	lives, ready := filepath.Join(t.TempDir(), "lives"), filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	script := "echo $$ >> " + lives + "; [ $(wc -l < " + lives + ") != 1 ] || echo > " + ready + "; exec sleep 600"
	a := rawAlloc("service", false, map[string]any{"command": "/bin/sh", "args": []any{"-c", script}})
	r.control.assign(a)
	_, err := os.ReadFile(ready) // it has said so
	require.NoError(t, err)
	r.await(a.ID, "running")
	r.end()
	state, err := localstate.OpenBolt(filepath.Join(r.data, "client", "state.db"), slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	records, err := state.Load()
	require.NoError(t, err)
	task := records[0].Tasks["t"]
	task.Handle, task.State = nil, &drover.TaskState{State: "pending"}
	require.NoError(t, state.Commit(context.Background(), localstate.PutTask(a.ID, "t", task)))
	require.NoError(t, state.Close())

	pushed := r.control.pushed()
	r.start()
	for r.control.pushed() == pushed || r.control.alloc(a.ID).TaskStates["t"].StartedAt.IsZero() {
		r.awaitPush()
	}
	found := r.control.alloc(a.ID)
	require.Equal(t, "running", found.ClientStatus)
	require.Equal(t, drover.TaskStarted, found.TaskStates["t"].Events[len(found.TaskStates["t"].Events)-1].Type)
	data, err := os.ReadFile(lives)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(data)), 1)
	require.DirExists(t, "/proc/"+strings.TrimSpace(string(data)))
	r.end() // it was stored now
	r.start()
	r.stop(a)
	r.await(a.ID, "complete")
}

// TestRealLostStateRunsNothingTwice: the local state is gone, and what ran is not known any more.
func TestRealLostStateRunsNothingTwice(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	lives := filepath.Join(t.TempDir(), "lives")
	require.NoError(t, syscall.Mkfifo(lives, 0o600))
	pid := func() string { // of the next start
		b, err := os.ReadFile(lives)
		require.NoError(t, err)
		return strings.TrimSpace(string(b))
	}
	a := rawAlloc("service", false, map[string]any{"command": "/bin/sh", "args": []any{"-c", "echo $$ > " + lives + "; exec sleep 600"}})
	r.control.assign(a)
	first := pid()
	r.await(a.ID, "running")
	r.end()
	require.NoError(t, os.Remove(filepath.Join(r.data, "client", "state.db")))
	require.DirExists(t, "/proc/"+first, "it outlives the agent")
	r.start()
	<-r.agent.restored
	_, err := os.Stat("/proc/" + first + "/fd/0")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotEqual(t, first, pid())
	r.stop(a)
	r.await(a.ID, "complete")
}

func (r *real) awaitPush() {
	r.control.mu.Lock()
	heard := r.control.heard
	r.control.mu.Unlock()
	select {
	case <-heard:
	case <-time.After(time.Minute):
		require.FailNow(r.t, "nothing was reported")
	}
}

// An agent knows whether the last one ended by itself.
func TestRealDeathIsNoticed(t *testing.T) {
	t.Parallel()
	r := newReal(t)
	died := func() bool {
		<-r.agent.restored
		return r.agent.runnerCfg.Shared.Died
	}
	require.False(t, died())
	path := filepath.Join(r.data, "client", "running")
	require.FileExists(t, path)
	r.end()
	require.NoFileExists(t, path)
	r.start()
	require.False(t, died())
	r.end()
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // as one that is killed leaves it
	r.start()
	require.True(t, died())
	r.end()
	require.NoFileExists(t, path)
}
