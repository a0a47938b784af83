package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

// finding is one line of the doctor's report.
type finding struct {
	Check  string
	State  string // ok, weak, missing; of hostile programs: contained, weak, escaped, not tried
	Says   string
	Needed bool   // the sandbox cannot run without it
	Kind   string // "machine", "driver", "hostile program"
}

// What a finding can be.
const (
	findingOK      = "ok"
	findingWeak    = "weak"
	findingMissing = "missing"
	findingEscaped = "escaped"
)

// The kinds.
const (
	kindMachine = "machine"
	kindDriver  = "driver"
	kindHostile = "hostile program"
)

func (a *App) doctorCommand() *cobra.Command {
	o := &output{}
	var dir, scratch string
	var quick bool
	c := leaf("doctor", "Say what this machine has for running tasks, what it lacks, and what hostile programs can do to it", 0, 0, func(ctx context.Context, _ []string) error {
		list := a.examine(ctx, dir)
		if !quick && a.Try != nil {
			list = append(list, a.tryGuests(ctx, scratch)...)
		}
		return a.doctor(ctx, o, list)
	})
	with(c, `Looks at this machine: control groups, namespaces, file systems, seccomp, docker, gVisor, disk. Then it starts two real sandboxes,
as an agent with the rights of this user would, and runs hostile programs in one of them for some seconds: a fork bomb, a
memory bomb, a disk filler, endless output, and attempts to reach the kernel, the supervisor, other sandboxes and the
machine, and to survive. It says of each whether it was contained, and counts what is left. Run it with and without root:
without, some things are held by weaker means. Where a docker daemon answers (DOCKER_HOST), the same is done with containers, of runc and of gVisor (runsc).
If an agent answers, what its node's drivers say is shown too.

Exit codes: 0 if sandboxes can run here and held, 1 if not.`, "drover doctor\ndrover doctor -quick\ndrover doctor -json")
	o.bind(c.Flags())
	c.Flags().StringVar(&dir, "data-dir", "/var/lib", "where data would be kept: its disk is looked at")
	c.Flags().StringVar(&scratch, "scratch", "", "folder for the sandboxes' files while it runs (default: the system's for temporary files)")
	c.Flags().BoolVar(&quick, "quick", false, "only look, run nothing")
	return a.remote(c)
}

// tryGuests runs the hostile programs.
func (a *App) tryGuests(ctx context.Context, scratch string) (list []finding) {
	err := a.Try(ctx, scratch, func(program, state, says string) {
		list = append(list, finding{Check: program, State: state, Says: says, Kind: kindHostile})
	})
	if err != nil {
		list = append(list, finding{Check: "run a sandbox", State: findingMissing, Says: err.Error(), Needed: true, Kind: kindHostile})
	}
	return list
}

func (a *App) doctor(ctx context.Context, o *output, list []finding) error {
	for i := range list {
		list[i].Kind = cmp.Or(list[i].Kind, kindMachine)
	}
	node := a.ownNode(ctx)
	if node != nil {
		list = append(list, driversOf(node)...)
	}
	done, err := o.data(a.Out, list)
	if !done {
		err = a.report(list, node)
	}
	if err != nil {
		return err
	}
	return verdict(list)
}

// verdict is an error if sandboxes cannot run here, or do not hold.
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
		return &exitError{code: exitFailure, err: fmt.Errorf("sandboxes cannot run here, for want of: %s", strings.Join(lacks, ", "))}
	case len(escaped) > 0:
		return &exitError{code: exitFailure, err: fmt.Errorf("sandboxes are not safe here: %s", strings.Join(escaped, ", "))}
	}
	return nil
}

func (a *App) report(list []finding, node *drover.Node) error {
	headings := map[string]string{kindMachine: "Part|State|Says", kindHostile: "Hostile program|State|Says", kindDriver: "Driver of the agent|State|Says"}
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
			fmt.Fprintln(a.Out)
		}
		if err := table(a.Out, "", headings[kind], rows); err != nil {
			return err
		}
	}
	if node == nil {
		_, err := fmt.Fprintln(a.Out, "\nNo agent answers, so this is what was found from outside of one.")
		return err
	}
	return nil
}

// ownNode is the node of the agent that answers, if one does.
func (a *App) ownNode(ctx context.Context) *drover.Node {
	c, err := a.asks()
	if err != nil {
		return nil
	}
	id, err := c.localNode(ctx)
	if err != nil {
		return nil
	}
	n, err := c.node(ctx, id)
	if err != nil {
		return nil
	}
	return n
}

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
