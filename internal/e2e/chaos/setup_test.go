package chaos

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// joinToken is what nodes show to servers.
const joinToken = "chaos"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		timeline: &timeline{began: time.Now()}, t: t, ctx: context.WithoutCancel(t.Context()), ran: filepath.Join(dir, "ran"),
		steady: map[string]began{}, names: map[string]string{}, mended: map[kind][]time.Duration{}, injected: map[kind]int{},
		written: written{
			jobs: map[string]uint64{}, unsure: map[string]bool{}, children: map[string]map[string]bool{},
		},
		executed: executed{claims: map[string][]string{}},
	}
	require.NoError(t, os.WriteFile(w.ran, nil, 0o600))
	at := map[string]string{}
	add := func(name string, number, last int) *host {
		h := &host{
			name: name, number: number, address: fmt.Sprint(subnet, last), dir: filepath.Join(dir, name),
			onEnd: func(text string) { w.breach(true, "%s", text) },
		}
		at[name] = h.address
		require.NoError(t, os.MkdirAll(h.dir, 0o700))
		require.NoError(t, os.WriteFile(h.date(), make([]byte, 8), 0o600))
		return h
	}
	for i := range 3 {
		w.servers = append(w.servers, add(fmt.Sprint("s", i), i, 1+i))
	}
	for i := range 5 {
		w.nodes = append(w.nodes, add(fmt.Sprint("n", i), i, 11+i))
	}
	at[machinesHost] = fmt.Sprint(subnet, 21)
	w.lan = makeLAN(t, at)
	w.cloud = newBought(t, w.lan, filepath.Join(dir, "machines"))
	w.http = &http.Client{Transport: &http.Transport{DialContext: w.lan.dial, MaxIdleConnsPerHost: 100}}
	t.Cleanup(func() { drivertest.SweepFolder(dir); w.removeGroups() }) // of whatever outlived its agent
	return w
}

// removeGroups takes away the control groups of this run, of which nodes that were killed leave some.
func (w *world) removeGroups() {
	gone := w.eventually(10*time.Second, func() bool {
		found, _ := filepath.Glob("/sys/fs/cgroup/" + program.GroupParent())
		more, _ := filepath.Glob("/sys/fs/cgroup/*/" + program.GroupParent())
		for _, dir := range append(found, more...) {
			drivertest.RemoveGroups(dir)
		}
		return len(found)+len(more) == 0
	})
	if !gone {
		w.t.Error("control groups of the run are left")
	}
}

// serverText and nodeText are the configurations of agents.
func (w *world) serverText(h *host) string {
	var join []string
	for _, address := range w.others(h) {
		join = append(join, fmt.Sprintf("%q", address))
	}
	return fmt.Sprintf(`name = %q
data_dir = %q
bind_addr = %q
insecure = true
server {
  enabled = true
  bootstrap_expect = 3
  encrypt = "MDEyMzQ1Njc4OWFiY2RlZg=="
  retry_join = [%s]
  retry_interval = "1s"
  join_token = %q
  min_heartbeat_ttl = "5s"
  heartbeat_grace = "5s"
  failover_heartbeat_ttl = "20s"
}
autopilot {
  server_stabilization_time = "2s"
}
client {
  enabled = false
}
%s`, h.name, h.data(), h.address, strings.Join(join, ", "), joinToken, w.cloud.block)
}

func (w *world) nodeText(h *host) string {
	var servers []string
	for i := range w.servers { // each node begins with another
		if i == 0 || promiseNodes {
			servers = append(servers, fmt.Sprintf("%q", w.servers[(h.number+i)%3].address+":4647"))
		}
	}
	return fmt.Sprintf(`name = %q
data_dir = %q
bind_addr = "127.0.0.1"
client {
  enabled = true
  cgroup_parent = %q
  servers = [%s]
  join_token = %q
  memory_total_mb = 8000
  cpu_total_compute = 20000
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
plugin "docker" {
  config {
    enabled = false
  }
}
`, h.name, h.data(), program.GroupParent(), strings.Join(servers, ", "), joinToken)
}

// begin starts all agents, and waits until they are a cluster with the jobs that the clients need.
func (w *world) begin() {
	t := w.t
	for _, s := range w.servers {
		s.mountDisk(t)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "agent.hcl"), []byte(w.serverText(s)), 0o600))
	}
	for _, n := range w.nodes {
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, "agent.hcl"), []byte(w.nodeText(n)), 0o600))
	}
	t.Cleanup(w.end)
	for _, h := range append(append([]*host{}, w.servers...), w.nodes...) {
		require.NoError(t, h.start(0))
	}
	require.True(t, w.eventually(time.Minute, w.whole), "no cluster:\n%s", w.servers[0].last(50))
	w.say("three servers, %s leads", w.servers[w.leader()].name)
	put := func(path string, body any) {
		t.Helper()
		var err error
		require.True(t, w.eventually(time.Minute, func() bool {
			_, err = w.call(0, http.MethodPut, path, nil, body, nil, patience)
			return err == nil
		}), "%v", err)
	}
	put("/v1/jobs", map[string]any{"Job": w.parentJob()})
	put("/v1/jobs", map[string]any{"Job": w.steadyJob()})
	put("/v1/environment/"+environment, execution.Environment{ID: environment, Image: "host", PoolSize: 6, CPU: 10, MemoryMB: 16})
	put(settingPath, drover.SchedulerConfiguration{NodeLimitForFeasibilityChecks: 1})
	for i := range 2 {
		r := jobRegister{w, fmt.Sprint("register", i)}
		put("/v1/jobs", map[string]any{"Job": r.job("first")})
		w.contended = append(w.contended, r)
		w.histories = append(w.histories, &history{name: r.id})
	}
	w.contended = append(w.contended, settingRegister{w})
	w.histories = append(w.histories, &history{name: "the scheduler's configuration"})
	ready := func() bool {
		var nodes []drover.NodeListStub
		_, err := w.call(0, http.MethodGet, "/v1/nodes", nil, nil, &nodes, patience)
		n := 0
		for _, x := range nodes {
			if x.Status == drover.NodeStatusReady {
				n++
			}
		}
		return err == nil && (n == len(w.nodes) || n > 0 && !promiseNodes)
	}
	require.True(t, w.eventually(time.Minute, ready), "the nodes are not ready:\n%s", w.nodes[0].last(50))
	require.True(t, w.eventually(time.Minute, func() bool {
		list, err := w.allocations(steady)
		n := 0
		for _, a := range list {
			if a.ClientStatus == drover.AllocClientRunning {
				n++
			}
		}
		return err == nil && n == steadyCount
	}), "the service does not run")
	require.NoError(t, w.baseline())
	w.say("nodes and jobs are ready")
}

// end stops all agents.
func (w *world) end() {
	if err := w.clear(); err != nil && !w.t.Failed() {
		w.t.Error(err)
	}
	var ends sync.WaitGroup
	for _, h := range append(append([]*host{}, w.nodes...), w.servers...) {
		ends.Go(func() { // ends with the agent
			if err := h.stop(30 * time.Second); err != nil {
				w.t.Error(err)
			}
		})
	}
	ends.Wait()
}
