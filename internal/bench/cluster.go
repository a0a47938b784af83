package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/client/fastpath"
	"github.com/drover-project/drover/internal/bench/cluster"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// planes are the flags of "drover bench cluster".
type planes struct {
	*bench
	kills      int
	jobsWanted int
	nodeCount  int
	allocs     int
	each       int // allocations of one job; 0: all
	servers    int // that the simulated nodes have
	profiles   string
}

// clusterCommand returns "drover bench cluster".
func clusterCommand(app *term.App) *cobra.Command {
	m := &planes{bench: &bench{app: app, now: clock.Wall{}.Now}}
	var only string
	c := &cobra.Command{
		Use: "cluster", Args: cobra.NoArgs,
		Short: "Measure three servers on this machine beside one: writes, claims, executions, the leader's death",
		Example: "  drover bench cluster -quick\n  drover bench cluster -only failover -kills 50\n" +
			"  drover bench cluster -only nodes -nodes 10000\n" +
			"  drover bench cluster -only nodes -nodes 6100 -allocs 2000000 -each 100000 -servers 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			pattern, err := regexp.Compile(only)
			if err != nil {
				return drover.Errorf(drover.Invalid, "-only: %w", err)
			}
			return m.run(cmd.Context(), pattern)
		},
	}
	c.Flags().BoolVar(&m.quick, "quick", false, "a tenth of the repetitions")
	c.Flags().BoolVar(&m.markdown, "markdown", false, "print the table as Markdown")
	c.Flags().StringVar(&only, "only", "", "run the parts that match this expression: writes, executions, failover, nodes")
	c.Flags().IntVar(&m.kills, "kills", 0, "how often the leader is killed; default 50, 5 with -quick")
	c.Flags().IntVar(&m.jobsWanted, "jobs", 0, "how many jobs are registered; default 5,000, 500 with -quick")
	c.Flags().IntVar(&m.nodeCount, "nodes", 0, "how many nodes are simulated; default 1,000, 100 with -quick")
	c.Flags().IntVar(&m.allocs, "allocs", 0, "how many allocations they get; default ten a node")
	c.Flags().IntVar(&m.each, "each", 0, "how many allocations of the nodes one job has; default all")
	c.Flags().IntVar(&m.servers, "servers", 3, "how many servers the simulated nodes have; with 1 none is killed")
	c.Flags().StringVar(&m.profiles, "profiles", "", "a folder for profiles of the servers and of simulated nodes")
	return c
}

// cluster measures three servers beside one, and some simulated nodes.
func (b *bench) cluster(ctx context.Context) error {
	return (&planes{bench: b, servers: 3}).measure(ctx, regexp.MustCompile(""))
}

// run measures the parts whose names match, and prints the table.
func (m *planes) run(ctx context.Context, only *regexp.Regexp) error {
	if err := m.measure(ctx, only); err != nil {
		return err
	}
	return m.table()
}

// measure measures the parts whose names match.
func (m *planes) measure(ctx context.Context, only *regexp.Regexp) error {
	if m.kills == 0 {
		m.kills = map[bool]int{false: 50, true: 5}[m.quick]
	}
	if m.jobsWanted == 0 {
		m.jobsWanted = m.n(5000)
	}
	if m.nodeCount == 0 {
		m.nodeCount = m.n(1000)
	}
	if m.allocs == 0 {
		m.allocs = 10 * m.nodeCount
	}
	if m.each == 0 {
		m.each = m.allocs
	}
	if m.servers != 1 && m.servers != 3 && m.servers != 5 {
		return drover.Errorf(drover.Invalid, "-servers: %d is none of 1, 3 and 5", m.servers)
	}
	if m.each < 0 || m.allocs < 0 || m.nodeCount < 0 {
		return drover.Errorf(drover.Invalid, "-nodes, -allocs and -each: none may be negative")
	}
	for _, p := range []part{{"writes", m.writes}, {"executions", m.onServers}, {"failover", m.failover}, {"nodes", m.manyNodes}} {
		if !only.MatchString(p.name) {
			continue
		}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// benchNode is a node with room for whatever is tried.
const benchNode = "  gc_max_allocs = 5000\n  memory_total_mb = 1000000\n  cpu_total_compute = 10000000\n  disk_total_mb = 10000000\n"

// onPlane runs one part against a plane of its own.
func (m *planes) onPlane(ctx context.Context, servers int, node string, part func(*cluster.Plane) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := cluster.Start(ctx, cluster.Config{
		Binary: self, Dir: dir, Servers: servers, Node: node, Debug: m.profiles != "", Clock: clock.Wall{},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	return part(p)
}

// writes measures registrations on one server and on three.
func (m *planes) writes(ctx context.Context) error {
	rate := map[int]float64{}
	for _, servers := range []int{1, 3} {
		err := m.onPlane(ctx, servers, "", func(p *cluster.Plane) (err error) {
			if _, err = p.Register(ctx, m.jobsWanted/10); err == nil { // what starts with the first ones
				rate[servers], err = p.Register(ctx, m.jobsWanted)
			}
			return err
		})
		if err != nil {
			return err
		}
		m.report(fmt.Sprintf("registrations acknowledged, servers: %d", servers), rate[servers], "a second", "", "")
	}
	m.report("registrations acknowledged by three servers", rate[3]/rate[1], "x one server's", "≥ 0.5", "")
	return nil
}

// onServers measures claims, executions and cycles on one server, and on three at the leader and at another.
func (m *planes) onServers(ctx context.Context) error {
	for _, servers := range []int{1, 3} {
		err := m.onPlane(ctx, servers, benchNode, func(p *cluster.Plane) error {
			leads, err := p.Leader(ctx)
			if err != nil {
				return err
			}
			if servers == 1 {
				return m.at(ctx, p, leads, "one server: ")
			}
			if err := m.at(ctx, p, leads, "three servers, at the leader: "); err != nil {
				return err
			}
			return m.at(ctx, p, (leads+1)%3, "three servers, at another: ")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// at runs the parts of the execution service through one of the servers.
func (m *planes) at(ctx context.Context, p *cluster.Plane, server int, prefix string) (err error) {
	a := p.Servers[server]
	m.agent, m.others = a.Process, nil
	for i, other := range p.Servers {
		if i != server {
			m.others = append(m.others, other.Process)
		}
	}
	m.others = append(m.others, p.Node.Process)
	m.api = newAPI(a.URL)
	if m.client, err = client.New(a.URL, client.WithHTTPClient(&http.Client{Transport: fastpath.New(nil)})); err != nil {
		return err
	}
	m.prefix = prefix
	defer func() { m.prefix, m.others = "", nil }()
	if err := m.executions(ctx); err != nil {
		return err
	}
	return m.cyclesAt(ctx, p, server)
}

// cyclesAt measures whole cycles through one of the servers, and how many entries of the log each takes.
func (m *planes) cyclesAt(ctx context.Context, p *cluster.Plane, server int) error {
	if err := m.environment(ctx, "bench", m.pool(100)); err != nil { // that of the cycles
		return err
	}
	before, err := p.Entries(ctx, server)
	if err != nil {
		return err
	}
	profiled := func() error { return nil }
	if m.profiles != "" {
		name := strings.Trim(strings.NewReplacer(" ", "-", ":", "", ",", "").Replace(m.prefix), "-")
		profiled = p.Profile(ctx, m.profiles, name, profiledCycles)
	}
	if err := m.cycles(ctx); err != nil {
		return err
	}
	after, err := p.Entries(ctx, server)
	if err != nil {
		return err
	}
	m.report("entries of the log a cycle", float64(after-before)/float64(m.cycleCount()), "", "", "")
	return profiled()
}

// profiledCycles is for how many seconds cycles are profiled.
const profiledCycles = 40

// failover kills the leader again and again.
func (m *planes) failover(ctx context.Context) error {
	return m.onPlane(ctx, 3, "", func(p *cluster.Plane) error {
		var all []time.Duration
		for i := range m.kills {
			took, err := p.Fail(ctx, fmt.Sprint("kill-", i))
			if err != nil {
				return err
			}
			fmt.Fprintf(m.app.Err, "the leader was killed: written again after %v\n", took.Round(time.Millisecond))
			all = append(all, took)
		}
		m.report("leader killed, a write acknowledged again, p50", percentile(all, 0.5)/1e3, "s", "≤ 2", "Nomad 5 to 10")
		m.report(fmt.Sprintf("leader killed, a write acknowledged again, worst of %d", len(all)), percentile(all, 1)/1e3, "s", "≤ 5", "")
		return nil
	})
}
