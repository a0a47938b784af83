package e2e

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
)

// olderCommit is the last one whose program writes cluster version 1 in a cluster. Another program is tried with DROVER_OLD.
const olderCommit = "24d289a"

// olderProgram returns a program that reads cluster version 1 only: the one that DROVER_OLD names, or that of olderCommit, which is
// built. A clone without the commit fails the test: CI would no longer try upgrades, and nobody would notice.
func olderProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("DROVER_OLD"); path != "" {
		return path
	}
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", `git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"`, "sh", olderCommit, dir)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("this test builds the program of commit %s, which is not here: make the clone whole (git fetch --unshallow), or name "+
			"such a program in DROVER_OLD: %v: %s", olderCommit, err, out)
	}
	build := func(out, pkg string) {
		cmd := exec.Command("go", "build", "-o", out, pkg)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	supervisor := filepath.Join(dir, "internal/node/supervisor/initbin/drover-init")
	build(supervisor, "./cmd/drover-init")
	in, err := os.Open(supervisor)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(supervisor + ".gz")
	require.NoError(t, err)
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, out.Close())
	older := filepath.Join(dir, "drover-older")
	build(older, "./cmd/drover")
	return older
}

// load registers jobs one after the other until it is stopped, at whichever server answers, and remembers what was acknowledged.
type load struct {
	mu      sync.Mutex
	servers []*agent // guarded by mu
	acked   []string // guarded by mu
	stop    chan struct{}
	done    chan struct{}
}

func startLoad(t *testing.T, servers []*agent) *load {
	l := &load{servers: append([]*agent{}, servers...), stop: make(chan struct{}), done: make(chan struct{})}
	go func() { // ends when it is stopped
		defer close(l.done)
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			case <-pace.C:
			}
			l.mu.Lock()
			at := l.servers[i%len(l.servers)]
			l.mu.Unlock()
			c, err := api.NewClient(&api.Config{Address: "http://" + at.addr})
			if err != nil {
				t.Error(err)
				return
			}
			id := fmt.Sprint("load", i)
			if _, _, err := c.Jobs().Register(serversJob(id), nil); err == nil {
				l.mu.Lock()
				l.acked = append(l.acked, id)
				l.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { l.end() })
	return l
}

// set says that another agent is the server with the number now.
func (l *load) set(i int, a *agent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers[i] = a
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// end stops the load and returns what was acknowledged.
func (l *load) end() []string {
	l.mu.Lock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.mu.Unlock()
	<-l.done
	return l.acked
}

// runs is a client that claims a runner, executes in it and releases it, again and again, at whichever server answers.
type runs struct {
	t    *testing.T
	l    *load // has the servers
	stop context.CancelFunc
	done chan struct{}

	mu sync.Mutex
	// guarded by mu: the leader was of today's program for a while, which hands out none twice; an older one does so when it stops.
	strict bool

	seen map[string]bool // guarded by mu: runners that were handed out
	ran  int             // guarded by mu: executions that ended as they should
	last error           // guarded by mu
}

func startRuns(t *testing.T, l *load) *runs {
	ctx, cancel := context.WithCancel(t.Context())
	r := &runs{t: t, l: l, stop: cancel, done: make(chan struct{}), seen: map[string]bool{}}
	go func() { // ends with ctx
		defer close(r.done)
		for i := 0; ctx.Err() == nil; i++ {
			l.mu.Lock()
			at := l.servers[i%len(l.servers)]
			l.mu.Unlock()
			err := r.once(ctx, at)
			r.mu.Lock()
			r.last = err
			r.mu.Unlock()
		}
	}()
	t.Cleanup(r.end)
	return r
}

// once is one run. A server that is being replaced may fail it at any point.
func (r *runs) once(ctx context.Context, at *agent) error {
	c, err := client.New("http://" + at.addr)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	one, err := c.Claim(limit, execution.ClaimRequest{Environment: "e", Wait: 5 * time.Second, IdleTimeout: time.Minute})
	if err != nil {
		return fmt.Errorf("claiming at %s: %w", at.addr, err)
	}
	r.mu.Lock()
	if r.seen[one.ID] && r.strict {
		r.t.Errorf("runner %s was handed out twice", one.ID)
	}
	r.seen[one.ID] = true
	r.mu.Unlock()
	x, err := c.StartExecution(limit, one.ID, execution.Request{Spec: execution.Spec{Argv: []string{"/bin/sh", "-c", "exit 7"}, Detach: -1}})
	if err == nil && x.Running {
		x, err = c.WaitExecution(limit, x.ID)
	}
	if err == nil && x.Receipt != nil && x.Receipt.Cause == execution.CauseRunnerGone && !r.strict {
		err = fmt.Errorf("runner %s ended under its program: %s", one.ID, x.Receipt.Error) // its server is being replaced
	}
	if err == nil && (x.Receipt == nil || x.Receipt.ExitCode != 7) {
		r.t.Errorf("the program ends with 7: %+v", x.Receipt)
	}
	if released := c.Release(limit, one.ID); err == nil {
		err = released
	}
	if err != nil {
		return fmt.Errorf("executing at %s: %w", at.addr, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran++
	return nil
}

// more waits until some more runs went well.
func (r *runs) more(what string) {
	r.t.Helper()
	state := func() (int, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.ran, r.last
	}
	before, _ := state()
	eventually(r.t, "runs "+what, func() (bool, string) {
		n, err := state()
		return n >= before+10, fmt.Sprint(n-before, " ", err)
	})
}

// from says whether runners are handed out by today's program from here on.
func (r *runs) from(today bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strict = today
}

func (r *runs) end() {
	r.stop()
	<-r.done
}

// stat is one of an agent's statistics; "" where it has none.
func (a *agent) stat(part, key string) string {
	a.t.Helper()
	self, err := a.nomad().Agent().Self()
	require.NoError(a.t, err)
	return self.Stats[part][key]
}

// number is stat for numbers.
func (a *agent) number(part, key string) int {
	n, _ := strconv.Atoi(a.stat(part, key)) // 0 where there is none
	return n
}

// replace restarts the server with the number i with another program, and waits until it has all that the leader had then.
func (r *region) replace(l *load, i int, with string) {
	r.t.Helper()
	r.list[i].Stop()
	before := l.count()
	eventually(r.t, "writes without it", func() (bool, string) { return l.count() > before, "" })
	r.with = with
	r.list[i] = r.start(i, 3)
	leads := r.agreed(3, r.list...)
	index := r.list[leads].number("raft", "last_log_index")
	eventually(r.t, "a server that has caught up", func() (bool, string) {
		has := r.list[i].number("raft", "applied_index")
		return has >= index, fmt.Sprintf("%d of %d", has, index)
	})
	l.set(i, r.list[i])
}

// TestRollingUpgrade: three servers of an older program get today's one after the other, while jobs are registered. One goes
// back and forth before the last has it. Then the cluster's version rises, an older program is refused with the reason, and
// what was acknowledged is at each server.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	older := olderProgram(t)
	r := &region{t: t, dir: t.TempDir(), more: "autopilot {\n  server_stabilization_time = \"1s\"\n}\n", with: older}
	var at []string
	for range 3 {
		r.rpc = append(r.rpc, freePort(t))
		at = append(at, fmt.Sprintf("%q", "127.0.0.1:"+r.rpc[len(r.rpc)-1]))
	}
	r.begin(3)
	r.agreed(3, r.list...)
	start(t, append([]string{"-client", "-node", "n"},
		config(t, filepath.Join(r.dir, "n"), clientBlock("servers = ["+strings.Join(at, ", ")+"]"))...)...)
	r.ready(1)
	_, _, err := r.list[0].native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 4}, time.Minute)
	require.NoError(t, err)
	l := startLoad(t, r.list)
	claimed := startRuns(t, l)
	claimed.more("at the older program")

	r.replace(l, 0, "")
	claimed.more("beside one server of today")
	r.replace(l, 1, "")
	for r.agreed(3, r.list...) == 2 {
		r.replace(l, 2, older) // it knows no other way to hand over
	}
	claimed.from(true)
	claimed.more("at a leader of today, before the version rises")
	require.Equal(t, "1", r.list[0].stat("drover", "cluster_version"))
	claimed.from(false)
	r.replace(l, 0, older)
	r.replace(l, 0, "")
	require.Equal(t, "1", r.list[1].stat("drover", "cluster_version"), "one server reads version 1 only")
	r.replace(l, 2, "")
	for _, a := range r.list {
		eventually(t, "the version", func() (bool, string) {
			v := a.stat("drover", "cluster_version")
			return v == strconv.Itoa(command.Newest), v
		})
	}

	claimed.from(true)
	claimed.more("of leased runners")

	// A server whose program is an older one again is out, and the others go on.
	leads := r.agreed(3, r.list...)
	out := (leads + 1) % 3
	r.list[out].Stop()
	r.with = older
	r.list[out] = r.start(out, 3)
	eventually(t, "the reason", func() (bool, string) {
		text := r.list[leads].Output() + r.list[(leads+2)%3].Output()
		refused := fmt.Sprintf("this cluster writes version %d", command.Newest)
		return strings.Contains(text, refused) && strings.Contains(text, "start another program there") &&
			strings.Contains(text, "its program may be an older one, which does not speak drover-raft/2"), text
	})
	has := r.list[out].number("raft", "last_log_index")
	before := l.count()
	eventually(t, "writes without it", func() (bool, string) { return l.count() > before+10, "" })
	require.Equal(t, has, r.list[out].number("raft", "last_log_index"), "it gets no entries")
	claimed.more("without it")
	r.list[out].Stop()
	r.with = ""
	r.list[out] = r.start(out, 3)
	r.agreed(3, r.list...)

	claimed.end()
	hasAll(t, l.end(), r.list)
	endAll(t, r.list[leads])
}

// hasAll waits until each server has all jobs that were acknowledged.
func hasAll(t *testing.T, acked []string, list []*agent) {
	t.Helper()
	require.NotEmpty(t, acked)
	t.Logf("%d registrations were acknowledged", len(acked))
	for i, a := range list {
		eventually(t, fmt.Sprintf("all that was acknowledged, at server %d", i), func() (bool, string) {
			jobs, _, err := a.nomad().Jobs().List(&api.QueryOptions{AllowStale: true})
			require.NoError(t, err)
			has := map[string]bool{}
			for _, j := range jobs {
				has[j.ID] = true
			}
			for _, id := range acked {
				if !has[id] {
					return false, id
				}
			}
			return true, ""
		})
	}
}
