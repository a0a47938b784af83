package traces

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
)

const (
	nodeCount = 2
	// nodeMemory is what each node had in the recording, in MB: some jobs ask for 60 % or 200 % of it.
	nodeMemory = 24105
)

// cluster is a server and its nodes, each a process, with one reader of the event stream for all histories on it.
type cluster struct {
	base     string // of the API
	api      *api.Client
	nodes    []string // identifiers by name
	settings *api.SchedulerConfiguration

	mu      sync.Mutex
	watches map[string]*watch // by job
	lost    error             // why the event stream ended
}

// watch follows how many allocations of a job are running and wanted, at every entry of the log.
type watch struct {
	job     string
	changed chan struct{} // holds one element if something about the job happened

	running map[string]bool // allocations
	lowest  int
}

var rpcOn = regexp.MustCompile(`rpc=(127\.0\.0\.1:\d+)`)

func startCluster(t *testing.T, name string) *cluster {
	t.Helper()
	dir := t.TempDir()
	server := program.Start(t, append([]string{"-server"}, program.Config(t, filepath.Join(dir, "server"),
		"name = \""+name+"\"\nserver {\n  join_token = \"secret\"\n}")...)...)
	m := rpcOn.FindStringSubmatch(server.Output())
	require.NotNil(t, m, server.Output())
	for i := range nodeCount {
		block := program.ClientBlock(fmt.Sprintf("servers = [%q]\n  join_token = \"secret\"\n  memory_total_mb = %d\n  cpu_total_compute = "+
			"100000", m[1], nodeMemory))
		n := fmt.Sprintf("node-%d", i)
		program.Start(t, append([]string{"-client"}, program.Config(t, filepath.Join(dir, n), "name = \""+n+"\"\n"+block)...)...)
	}
	c := &cluster{base: "http://" + server.Addr, watches: map[string]*watch{}}
	var err error
	c.api, err = api.NewClient(&api.Config{Address: c.base})
	require.NoError(t, err)
	require.NoError(t, c.awaitNodes(t.Context(), time.Minute))
	found, _, err := c.api.Operator().SchedulerGetConfiguration(nil)
	require.NoError(t, err)
	c.settings = found.SchedulerConfig
	events, err := c.api.EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicAll: {"*"}}, 0, nil)
	require.NoError(t, err)
	go c.follow(events) // ends with the test, or with the server
	return c
}

// awaitNodes waits until all nodes can be used.
func (c *cluster) awaitNodes(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for index := uint64(0); ; {
		list, meta, err := c.api.Nodes().List((&api.QueryOptions{WaitIndex: index, WaitTime: 5 * time.Second}).WithContext(ctx))
		if err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
		index = meta.LastIndex
		byName := map[string]string{}
		for _, n := range list {
			if n.Status == api.NodeStatusReady && n.SchedulingEligibility == api.NodeSchedulingEligible && !n.Drain {
				byName[n.Name] = n.ID
			}
		}
		if len(byName) == nodeCount {
			c.nodes = nil
			for i := range nodeCount {
				c.nodes = append(c.nodes, byName[fmt.Sprintf("node-%d", i)])
			}
			return nil
		}
	}
}

// follow keeps the watches up to date.
func (c *cluster) follow(events <-chan *api.Events) {
	for batch := range events {
		if batch.Err != nil {
			c.end(batch.Err)
			return
		}
		c.apply(batch)
	}
	c.end(fmt.Errorf("the event stream ended"))
}

func (c *cluster) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
}

// apply takes what one entry of the log changed: only what is true after all of it counts.
func (c *cluster) apply(batch *api.Events) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range batch.Events {
		for _, w := range c.watches {
			if w.concerns(e) {
				w.take(e)
			}
		}
	}
	for _, w := range c.watches {
		w.lowest = min(w.lowest, len(w.running))
	}
}

func (w *watch) concerns(e api.Event) bool {
	for _, key := range append(e.FilterKeys, e.Key) {
		if key == w.job || strings.HasPrefix(key, w.job+"/") || strings.HasPrefix(key, w.job+"-") {
			return true
		}
	}
	return false
}

func (w *watch) take(e api.Event) {
	if a, ok := e.Payload["Allocation"].(map[string]any); ok && a["JobID"] == w.job {
		if id, _ := a["ID"].(string); a["DesiredStatus"] == api.AllocDesiredStatusRun && a["ClientStatus"] == api.AllocClientStatusRunning {
			w.running[id] = true
		} else {
			delete(w.running, id)
		}
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// watch begins to follow a job that does not exist yet.
func (c *cluster) watch(job string) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &watch{job: job, changed: make(chan struct{}, 1), running: map[string]bool{}}
	c.watches[job] = w
	return w
}

func (c *cluster) unwatch(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watches, w.job)
}

// begin starts a step: the lowest number counts from here.
func (c *cluster) begin(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.lowest = len(w.running)
}

func (c *cluster) lowest(w *watch) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return w.lowest, c.lost
}

// clear removes a history's jobs and waits until nothing of them runs.
func (c *cluster) clear(ctx context.Context, job string, w *watch) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	list, _, err := c.api.Jobs().PrefixList(job)
	if err != nil {
		return err
	}
	jobs := []string{job}
	for _, j := range list {
		jobs = append(jobs, j.ID)
		if _, _, err := c.api.Jobs().Deregister(j.ID, true, nil); err != nil {
			return fmt.Errorf("removing %s: %w", j.ID, err)
		}
	}
	for _, id := range jobs {
		for {
			allocs, _, err := c.api.Jobs().Allocations(id, true, nil)
			if err != nil {
				return err
			}
			if ended(allocs) {
				break
			}
			select {
			case <-w.changed:
			case <-ctx.Done():
				return fmt.Errorf("allocations of %s do not end", id)
			}
		}
	}
	return nil
}

func ended(allocs []*api.AllocationListStub) bool {
	for _, a := range allocs {
		if alive(a) {
			return false
		}
	}
	return true
}

// reset undoes what a history did to nodes and settings.
func (c *cluster) reset(ctx context.Context) error {
	for _, id := range c.nodes {
		if _, err := c.api.Nodes().UpdateDrain(id, nil, true, nil); err != nil {
			return fmt.Errorf("ending a drain: %w", err)
		}
		if _, err := c.api.Nodes().ToggleEligibility(id, true, nil); err != nil {
			return fmt.Errorf("eligibility: %w", err)
		}
		if _, err := c.api.Nodes().Meta().Apply(&api.NodeMetaApplyRequest{NodeID: id, Meta: map[string]*string{"twins": nil}}, nil); err != nil {
			return fmt.Errorf("meta: %w", err)
		}
	}
	if _, _, err := c.api.Operator().SchedulerSetConfiguration(c.settings, nil); err != nil {
		return fmt.Errorf("scheduler settings: %w", err)
	}
	return c.awaitNodes(ctx, time.Minute)
}
