package e2e

import (
	"compress/gzip"
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
)

// olderCommit is the last one whose program writes cluster version 1 in a cluster. Another program is tried with DROVER_OLD.
const olderCommit = "24d289a"

// olderProgram returns a program that reads cluster version 1 only: the one that DROVER_OLD names, or that of olderCommit, which is
// built. Without the commit's history the test is skipped.
func olderProgram(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("DROVER_OLD"); path != "" {
		return path
	}
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", `git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"`, "sh", olderCommit, dir)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Skipf("commit %s is not in this clone, and DROVER_OLD names no program: %v: %s", olderCommit, err, out)
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
	r := startServersWith(t, older, 3, "autopilot {\n  server_stabilization_time = \"1s\"\n}\n")
	r.agreed(3, r.list...)
	l := startLoad(t, r.list)

	r.replace(l, 0, "")
	r.replace(l, 1, "")
	require.Equal(t, "1", r.list[0].stat("drover", "cluster_version"))
	r.replace(l, 0, older)
	r.replace(l, 0, "")
	require.Equal(t, "1", r.list[1].stat("drover", "cluster_version"), "one server reads version 1 only")
	r.replace(l, 2, "")
	for _, a := range r.list {
		eventually(t, "the version", func() (bool, string) {
			v := a.stat("drover", "cluster_version")
			return v == "2", v
		})
	}

	// A server whose program is an older one again is out, and the others go on.
	leads := r.agreed(3, r.list...)
	out := (leads + 1) % 3
	r.list[out].Stop()
	r.with = older
	r.list[out] = r.start(out, 3)
	eventually(t, "the reason", func() (bool, string) {
		text := r.list[leads].Output() + r.list[(leads+2)%3].Output()
		return strings.Contains(text, "this cluster writes version 2") && strings.Contains(text, "start another program there"), text
	})
	before := l.count()
	eventually(t, "writes without it", func() (bool, string) { return l.count() > before+10, "" })
	r.list[out].Stop()
	r.with = ""
	r.list[out] = r.start(out, 3)
	r.agreed(3, r.list...)

	acked := l.end()
	require.NotEmpty(t, acked)
	t.Logf("%d registrations were acknowledged", len(acked))
	for i, a := range r.list {
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
