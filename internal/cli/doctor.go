package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover"
)

// finding is one line of the doctor's report.
type finding struct {
	Check  string
	State  string // ok, weak, missing
	Says   string
	Needed bool // the sandbox cannot run without it
}

// What a finding can be.
const (
	findingOK      = "ok"
	findingWeak    = "weak"
	findingMissing = "missing"
)

func (a *App) doctorCommand() *cobra.Command {
	o := &output{}
	var dir string
	c := leaf("doctor", "Say what this machine has for running tasks, and what it lacks", 0, 0, func(ctx context.Context, _ []string) error {
		return a.doctor(ctx, o, dir)
	})
	with(c, `Looks at this machine: control groups, namespaces, file systems, seccomp, docker, gVisor, disk. If an agent answers, what its
node's drivers say is shown too.

Exit codes: 0 if sandboxes can run here, 1 if not.`, "drover doctor\ndrover doctor -json")
	o.bind(c.Flags())
	c.Flags().StringVar(&dir, "data-dir", "/var/lib", "where data would be kept: its disk is looked at")
	return a.remote(c)
}

func (a *App) doctor(ctx context.Context, o *output, dir string) error {
	list := examine(ctx, dir)
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
	var lacks []string
	for _, f := range list {
		if f.Needed && f.State == findingMissing {
			lacks = append(lacks, f.Check)
		}
	}
	if len(lacks) > 0 {
		return &exitError{code: exitFailure, err: fmt.Errorf("sandboxes cannot run here, for want of: %s", strings.Join(lacks, ", "))}
	}
	return nil
}

func (a *App) report(list []finding, node *drover.Node) error {
	var rows [][]string
	for _, f := range list {
		rows = append(rows, []string{f.Check, f.State, f.Says})
	}
	if err := table(a.Out, "", "Part|State|Says", rows); err != nil {
		return err
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
		f := finding{Check: "driver " + name, State: findingOK, Says: d.HealthDescription, Needed: name == "sandbox"}
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
