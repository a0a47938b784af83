package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/bench/cluster"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// nodesCommand simulates nodes in a process of its own, so that what they need is not counted as this one's.
func nodesCommand(app *term.App) *cobra.Command {
	return &cobra.Command{
		Use: cluster.NodesCommand + " FIRST COUNT SERVER…", Short: "Simulate nodes, for the bench", Hidden: true, Args: cobra.MinimumNArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			var first, count int
			if _, err := fmt.Sscan(args[0]+" "+args[1], &first, &count); err != nil {
				return drover.Errorf(drover.Invalid, "the first number and the count: %w", err)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() { _, _ = io.Copy(io.Discard, app.In); cancel() }() // ends with the bench that has the other end
			cluster.RunNodes(ctx, clock.Wall{}, args[2:], first, count, func() { fmt.Fprintln(app.Out, "registered") })
			return nil
		},
	}
}

// manyNodes measures three servers with thousands of simulated nodes: how fast they come, how fast a job of many
// allocations runs on them, what they cost, and whether the leader's death loses one.
func (m *planes) manyNodes(ctx context.Context) error {
	return m.onPlane(ctx, 3, "", func(p *cluster.Plane) error {
		m.prefix = fmt.Sprintf("%d nodes: ", m.nodeCount)
		defer func() { m.prefix = "" }()
		m.api = newAPI(p.Servers[0].URL)
		empty, begin := serversMB(p), m.now()
		nodes, err := p.StartNodes(ctx, m.nodeCount)
		if err != nil {
			return err
		}
		defer nodes.Close()
		m.report("registered", m.now().Sub(begin).Seconds(), "s", "≤ 60", "")
		m.report("memory of the servers a node", (serversMB(p)-empty)*1e3/float64(m.nodeCount), "kB", "", "")
		simulated := 0.0
		for _, c := range nodes.Processes {
			simulated += memoryMB(c.Process.Pid, "VmRSS")
		}
		m.report("memory of a simulated node", simulated*1e3/float64(m.nodeCount), "kB", "", "")
		if err := m.manyAllocs(ctx); err != nil {
			return err
		}
		idle := m.idleServers(ctx, p) * 1e3 / float64(m.nodeCount)
		m.report("CPU of the servers when nothing happens, a thousand nodes", idle, "% of a core", "", "")
		m.report("peak memory of a server", peakMB(p), "MB", "", "")
		return m.survivors(ctx, p)
	})
}

// manyAllocs runs one job of many allocations.
func (m *planes) manyAllocs(ctx context.Context) error {
	begin := m.now()
	job := benchJob("many", drover.JobTypeBatch, "mock_driver", m.allocs, map[string]any{"run_for": "24h"})
	if err := m.register(ctx, job); err != nil {
		return err
	}
	if err := m.await(ctx, "many", func(s drover.TaskGroupSummary) bool { return s.Running == m.allocs }); err != nil {
		return err
	}
	took := m.now().Sub(begin)
	m.report(fmt.Sprintf("one job of %d allocations, placed and reported running", m.allocs), took.Seconds(), "s", "", "")
	m.report("allocations placed and reported running", float64(m.allocs)/took.Seconds(), "a second", "≥ 5,000",
		"Nomad about 1,500 on a large cluster")
	return nil
}

// survivors kills the leader, waits a while, and counts those that are still ready.
func (m *planes) survivors(ctx context.Context, p *cluster.Plane) error {
	took, err := p.Fail(ctx, "with-nodes")
	if err != nil {
		return err
	}
	m.api = newAPI(p.Servers[0].URL) // which may have been started again
	m.report("leader killed, a write acknowledged again", took.Seconds(), "s", "≤ 5", "")
	clock.Sleep(ctx, clock.Wall{}, m.while(30*time.Second))
	var list []drover.NodeListStub
	if _, err := m.api.Call(ctx, http.MethodGet, "/v1/nodes", nil, nil, &list); err != nil {
		return err
	}
	lost := m.nodeCount - len(list)
	for _, n := range list {
		if n.Status != drover.NodeStatusReady {
			lost++
		}
	}
	m.report("nodes lost after the leader", float64(lost), "of "+strconv.Itoa(m.nodeCount), "0", "")
	return nil
}

// while scales a time in which it is looked at what happens.
func (m *planes) while(full time.Duration) time.Duration {
	if m.quick {
		return full / 10
	}
	return full
}

// idleServers is the CPU of all servers, in percent of a core.
func (m *planes) idleServers(ctx context.Context, p *cluster.Plane) float64 {
	sum := func() (t float64) {
		for _, a := range p.Servers {
			t += cpuSeconds(a.Process.Process.Pid)
		}
		return t
	}
	clock.Sleep(ctx, clock.Wall{}, m.while(5*time.Second)) // what just started calms down
	before, begin := sum(), m.now()
	clock.Sleep(ctx, clock.Wall{}, m.while(20*time.Second))
	return 100 * (sum() - before) / m.now().Sub(begin).Seconds()
}

// serversMB is the memory of all servers.
func serversMB(p *cluster.Plane) (mb float64) {
	for _, a := range p.Servers {
		mb += memoryMB(a.Process.Process.Pid, "VmRSS")
	}
	return mb
}

// peakMB is the most that one of the servers had.
func peakMB(p *cluster.Plane) (mb float64) {
	for _, a := range p.Servers {
		mb = max(mb, memoryMB(a.Process.Process.Pid, "VmHWM"))
	}
	return mb
}
