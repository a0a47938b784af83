package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/term"
)

// finding is one line of the doctor's report, and an object of its JSON: the names of its fields are read by scripts.
type finding struct {
	Check  string
	State  string // ok, weak, missing; of hostile programs: contained, weak, escaped, not tried
	Says   string
	Needed bool   // the sandbox cannot run without it
	Kind   string // "machine", "driver", "hostile program"
}

// What a finding can be.
const (
	findingOK      = cluster.OK
	findingWeak    = cluster.Weak
	findingMissing = cluster.Missing
	findingEscaped = "escaped"
)

// The kinds.
const (
	kindMachine = "machine"
	kindDriver  = "driver"
	kindHostile = "hostile program"
)

// Probes are the examinations that need an agent's own parts. A nil one is left out.
type Probes struct {
	// Try runs hostile programs in sandboxes of this machine, in a new folder below dir ("" = any), and tells of each
	// how it fared: contained, weak, escaped, not tried.
	Try func(ctx context.Context, dir string, tell func(program, state, says string)) error
	// Machine says what this machine has and lacks; dir is where data would be kept. Without it tasks do not run on this system.
	Machine func(ctx context.Context, dir string) []cluster.Part
}

// Command is "drover doctor".
func Command(app *term.App, probes Probes) *cobra.Command {
	o := &term.Output{}
	var dir, scratch string
	var quick, servers, nodes bool
	var node string
	c := term.Command(app, "doctor", "Say what this machine has for running tasks, what it lacks, and what hostile programs can do to it", 0,
		0, func(ctx context.Context, app *term.App, _ []string) error {
			switch {
			case servers && (nodes || node != ""):
				return drover.Errorf(drover.Invalid, "-cluster: looks at servers, -nodes and -node at nodes; give one of them")
			case servers:
				return examineCluster(ctx, app, o)
			case nodes || node != "":
				return examineNodes(ctx, app, o, node)
			}
			list := examine(ctx, probes, dir)
			if !quick && probes.Try != nil {
				list = append(list, tryGuests(ctx, probes, scratch)...)
			}
			return conclude(ctx, app, o, list)
		})
	term.Describe(c, `
Looks at this machine: control groups, namespaces, file systems, seccomp, docker, gVisor, disk. Then it starts two real sandboxes,
as an agent with the rights of this user would, and runs hostile programs in one of them for some seconds: a fork bomb, a
memory bomb, a disk filler, endless output, and attempts to reach the kernel, the supervisor, other sandboxes and the
machine, and to survive. It says of each whether it was contained, and counts what is left. Run it with and without root:
without, some things are held by weaker means. Where a docker daemon answers (DOCKER_HOST), the same is done with containers,
of runc and of gVisor (runsc).
If an agent answers, what its node's drivers say is shown too.

With -cluster it looks at the servers of the agent's region instead: who leads, how many may fail, clocks, versions, settings that
differ, the disk under each log, entries that are missing, and certificates that end within 30 days.

With -nodes it shows what the region's nodes found of themselves and registered, and what is wrong with their drivers: findings in the
same words together, with how many nodes have them. -node NODE shows one node's, also what is well.

Exit codes: 0 if sandboxes can run here and held, 1 if not. With -cluster, -nodes or -node: 0 if all is well, 1 if something is
broken, 5 if all works but something is weak: one more failure stops the cluster, for instance.`,
		"drover doctor\ndrover doctor -quick\ndrover doctor -json\ndrover doctor -cluster\ndrover doctor -nodes\ndrover doctor -node web-1")
	o.Bind(c.Flags())
	c.Flags().StringVar(&dir, "data-dir", "/var/lib", "where data would be kept: its disk is looked at")
	c.Flags().StringVar(&scratch, "scratch", "", "folder for the sandboxes' files while it runs (default: the system's for temporary files)")
	c.Flags().BoolVar(&quick, "quick", false, "only look, run nothing")
	c.Flags().BoolVar(&servers, "cluster", false, "look at the servers of the region instead of this machine")
	c.Flags().BoolVar(&nodes, "nodes", false, "show what the nodes of the region found of themselves")
	c.Flags().StringVar(&node, "node", "", "show what this node found of itself; id, prefix or name")
	return term.Remote(app, c)
}

// examine has this machine looked at.
func examine(ctx context.Context, probes Probes, dir string) (list []finding) {
	if probes.Machine == nil {
		return []finding{{
			Check: "kernel", State: findingMissing, Needed: true,
			Says: runtime.GOOS + ": agents and their tasks run on Linux; here drover is the command line of an agent elsewhere (-address)",
		}}
	}
	for _, p := range probes.Machine(ctx, dir) {
		list = append(list, finding{Check: p.Check, State: p.State, Says: p.Says, Needed: p.Needed})
	}
	return list
}

// tryGuests runs the hostile programs, which takes some seconds. An error means that no sandbox could be started at
// all, so it is a finding by which the command fails.
func tryGuests(ctx context.Context, probes Probes, scratch string) (list []finding) {
	err := probes.Try(ctx, scratch, func(program, state, says string) {
		list = append(list, finding{Check: program, State: state, Says: says, Kind: kindHostile})
	})
	if err != nil {
		list = append(list, finding{Check: "run a sandbox", State: findingMissing, Says: err.Error(), Needed: true, Kind: kindHostile})
	}
	return list
}

// conclude adds what the agent's node says, prints the report, and returns the verdict. The verdict is that of all
// findings, also when JSON was asked for.
func conclude(ctx context.Context, app *term.App, o *term.Output, list []finding) error {
	for i := range list {
		list[i].Kind = cmp.Or(list[i].Kind, kindMachine)
	}
	node := ownNode(ctx, app)
	if node != nil {
		list = append(list, driversOf(node)...)
	}
	done, err := o.Data(app.Out, list)
	if !done {
		err = report(app, list, node)
	}
	if err != nil {
		return err
	}
	return verdict(list)
}

// verdict is an error with exit code 1 if sandboxes cannot run here, or do not hold. Weak findings are no failure.
func verdict(list []finding) error {
	var lacks, escaped []string
	for _, f := range list {
		switch {
		case f.Needed && f.State == findingMissing:
			lacks = append(lacks, f.Check)
		case f.State == findingEscaped:
			escaped = append(escaped, f.Check)
		}
	}
	switch {
	case len(lacks) > 0:
		return &term.ExitError{Code: term.ExitFailure, Err: fmt.Errorf("sandboxes cannot run here, for want of: %s", strings.Join(lacks, ", "))}
	case len(escaped) > 0:
		return &term.ExitError{Code: term.ExitFailure, Err: fmt.Errorf("sandboxes are not safe here: %s", strings.Join(escaped, ", "))}
	}
	return nil
}

// report prints a table for each kind of finding: the machine first, then the hostile programs, then the agent's
// drivers. node is nil if no agent answers, which is said then.
func report(app *term.App, list []finding, node *drover.Node) error {
	headings := map[string]string{
		kindMachine: "Part|State|Says", kindHostile: "Hostile program|State|Says",
		kindDriver: "Driver of the agent|State|Says",
	}
	for i, kind := range []string{kindMachine, kindHostile, kindDriver} {
		var rows [][]string
		for _, f := range list {
			if f.Kind == kind {
				rows = append(rows, []string{f.Check, f.State, f.Says})
			}
		}
		if len(rows) == 0 {
			continue
		}
		if i > 0 {
			fmt.Fprintln(app.Out)
		}
		if err := term.Table(app.Out, "", headings[kind], rows); err != nil {
			return err
		}
	}
	if node == nil {
		_, err := fmt.Fprintln(app.Out, "\nNo agent answers, so this is what was found from outside of one.")
		return err
	}
	return nil
}

// ownNode returns the node of the agent that answers. It is nil if none answers or it runs no node: the doctor works
// without one.
func ownNode(ctx context.Context, app *term.App) *drover.Node {
	c, err := app.Nomad()
	if err != nil {
		return nil
	}
	id, err := c.LocalNode(ctx)
	if err != nil {
		return nil
	}
	n, err := c.Node(ctx, id)
	if err != nil {
		return nil
	}
	return n
}

// driversOf makes a finding of each driver of the node. Only the sandbox is needed; a driver that works but says that
// it holds tasks by weaker means is weak.
func driversOf(n *drover.Node) (list []finding) {
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		f := finding{Check: name, State: findingOK, Says: d.HealthDescription, Needed: name == "sandbox", Kind: kindDriver}
		switch {
		case !d.Detected || !d.Healthy:
			f.State = findingMissing
		case d.Attributes["driver."+name+".weaker"] != "":
			f.State = findingWeak
		}
		list = append(list, f)
	}
	return list
}
