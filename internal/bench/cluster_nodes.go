package bench

import (
	"context"
	"errors"
	"fmt"
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
			go func() { // ends with the bench that has the other end
				defer cancel()
				if err := cluster.Obey(app.In); err != nil {
					fmt.Fprintln(app.Err, "profiles of simulated nodes:", err)
				}
			}()
			cluster.RunNodes(ctx, clock.Wall{}, args[2:], first, count, func() { fmt.Fprintln(app.Out, "registered") },
				func() { fmt.Fprintln(app.Out, "connected") })
			return nil
		},
	}
}

// manyNodes measures three servers with thousands of simulated nodes: how fast they come, how fast a job of many
// allocations runs on them, what they cost, and whether the leader's death loses one.
func (m *planes) manyNodes(ctx context.Context) error {
	return m.onPlane(ctx, m.servers, "", func(p *cluster.Plane) error {
		m.prefix = fmt.Sprintf("%d nodes: ", m.nodeCount)
		defer func() { m.prefix = "" }()
		m.api = newAPI(p.Servers[0].URL)
		leads, err := p.Leader(ctx)
		if err != nil {
			return err
		}
		empty, begin, before := serversMB(p), m.now(), rolesOf(p, leads, nil)
		nodes, err := p.StartNodes(ctx, m.nodeCount)
		if err != nil {
			return err
		}
		defer nodes.Close()
		profiled, err := m.profile(ctx, p, nodes, "registration")
		if err != nil {
			return err
		}
		if err := nodes.Await(ctx); err != nil {
			return err
		}
		m.report("registered", m.now().Sub(begin).Seconds(), "s", "≤ 60", "")
		if err := nodes.Await(ctx); err != nil {
			return err
		}
		m.report("each connected with all servers", m.now().Sub(begin).Seconds(), "s", "", "")
		m.reportRoles("registration", rolesOf(p, leads, nodes).since(before), m.nodeCount)
		m.report("memory of the servers a node", (serversMB(p)-empty)*1e3/float64(m.nodeCount), "kB", "", "")
		simulated := 0.0
		for _, c := range nodes.Processes {
			simulated += memoryMB(c.Process.Pid, "VmRSS")
		}
		m.report("memory of a simulated node", simulated*1e3/float64(m.nodeCount), "kB", "", "")
		if err := profiled(); err != nil {
			return err
		}
		if err := m.manyAllocs(ctx, p, leads, nodes); err != nil {
			return err
		}
		if err := m.idleServers(ctx, p, leads, nodes); err != nil {
			return err
		}
		m.report("peak memory of a server", peakMB(p), "MB", "", "")
		if m.servers == 1 {
			return nil
		}
		return m.survivors(ctx, p)
	})
}

// manyAllocs runs a job of many allocations, or several of them one behind the other.
func (m *planes) manyAllocs(ctx context.Context, p *cluster.Plane, leads int, nodes *cluster.Nodes) error {
	profiled, err := m.profile(ctx, p, nodes, "job")
	if err != nil {
		return err
	}
	begin, before, jobs := m.now(), rolesOf(p, leads, nodes), 0
	for left := m.allocs; left > 0; jobs++ {
		id, count := fmt.Sprint("many-", jobs), min(left, m.each)
		if err := m.register(ctx, benchJob(id, drover.JobTypeBatch, "mock_driver", count, map[string]any{"run_for": "24h"})); err != nil {
			return err
		}
		if err := m.await(ctx, id, func(s drover.TaskGroupSummary) bool { return s.Running == count }); err != nil {
			return err
		}
		left -= count
		if jobs > 0 || left > 0 {
			fmt.Fprintf(m.app.Err, "%d allocations run after %v, the largest server has %.0f MB\n",
				m.allocs-left, m.now().Sub(begin).Round(time.Second), peakMB(p))
		}
	}
	took := m.now().Sub(begin)
	m.report(fmt.Sprintf("%d allocations in %d jobs, placed and reported running", m.allocs, jobs), took.Seconds(), "s", "", "")
	m.report("allocations placed and reported running", float64(m.allocs)/took.Seconds(), "a second", "≥ 5,000",
		"Nomad about 1,500 on a large cluster")
	m.reportRoles("allocation", rolesOf(p, leads, nodes).since(before), m.allocs)
	m.report("memory of the servers an allocation", serversMB(p)*1e3/float64(m.allocs), "kB", "", "")
	return profiled()
}

// roles is the CPU time that each part of a plane has used, in seconds. That of the servers is the product's; simulated nodes
// cost other than real ones.
type roles struct{ leader, followers, nodes float64 }

// rolesOf reads the times until now. nodes may be nil.
func rolesOf(p *cluster.Plane, leads int, nodes *cluster.Nodes) (r roles) {
	for i, a := range p.Servers {
		if i == leads {
			r.leader += cpuSeconds(a.Process.Process.Pid)
		} else {
			r.followers += cpuSeconds(a.Process.Process.Pid)
		}
	}
	if nodes != nil {
		for _, c := range nodes.Processes {
			r.nodes += cpuSeconds(c.Process.Pid)
		}
	}
	return r
}

func (r roles) since(before roles) roles {
	return roles{r.leader - before.leader, r.followers - before.followers, r.nodes - before.nodes}
}

// reportRoles tells what each of n things cost. The figures hold however busy the machine is with other things.
func (m *planes) reportRoles(what string, spent roles, n int) {
	each := 1e6 / float64(n)
	m.report("CPU of the leader, each "+what, spent.leader*each, "µs", "", "")
	m.report("CPU of the followers together, each "+what, spent.followers*each, "µs", "", "")
	m.report("CPU of the simulated nodes, each "+what, spent.nodes*each, "µs", "", "")
}

// profileSeconds is how long a profile of the servers is.
func (m *planes) profileSeconds() int { return 10 + m.nodeCount/500 }

// profile begins profiles of what follows, if they are wanted; the function that it returns waits for them.
func (m *planes) profile(ctx context.Context, p *cluster.Plane, nodes *cluster.Nodes, name string) (wait func() error, err error) {
	if m.profiles == "" {
		return func() error { return nil }, nil
	}
	if err := nodes.Profile(m.profiles, name); err != nil {
		return nil, err
	}
	servers := p.Profile(ctx, m.profiles, name, m.profileSeconds())
	return func() error { return errors.Join(nodes.Profiled(), servers()) }, nil
}

// idleServers tells what nodes cost when nothing happens.
func (m *planes) idleServers(ctx context.Context, p *cluster.Plane, leads int, nodes *cluster.Nodes) error {
	clock.Sleep(ctx, clock.Wall{}, m.while(5*time.Second)) // what just started calms down
	profiled, err := m.profile(ctx, p, nodes, "idle")
	if err != nil {
		return err
	}
	before, begin := rolesOf(p, leads, nodes), m.now()
	clock.Sleep(ctx, clock.Wall{}, m.while(20*time.Second))
	spent := rolesOf(p, leads, nodes).since(before)
	share := 100 * 1e3 / float64(m.nodeCount) / m.now().Sub(begin).Seconds()
	m.report("CPU of the servers when nothing happens, a thousand nodes", (spent.leader+spent.followers)*share, "% of a core", "", "")
	m.report("CPU of the leader when nothing happens, a thousand nodes", spent.leader*share, "% of a core", "", "")
	m.report("CPU of the nodes when nothing happens, a thousand nodes", spent.nodes*share, "% of a core", "", "")
	return profiled()
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
