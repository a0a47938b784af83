package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// eligibilityCommand is "drover node eligibility". It moves nothing: what runs on the node stays there.
func eligibilityCommand(app *term.App) *cobra.Command {
	var enable, disable, self bool
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if enable == disable {
			return drover.Errorf(drover.Invalid, "give either -enable or -disable")
		}
		n, err := nodeOf(ctx, c, args, self)
		if err != nil {
			return err
		}
		eligibility := drover.NodeEligible
		if disable {
			eligibility = drover.NodeIneligible
		}
		body := map[string]string{"Eligibility": eligibility}
		if err := c.Put(ctx, "/v1/node/"+n.ID+"/eligibility", nil, body, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Node %s (%s) is %s.\n", term.ShortID(n.ID), n.Name, eligibility)
		return err
	}
	c := term.NomadCommand(app, "eligibility (-enable|-disable) NODE", "Say whether new allocations may be placed on a node", 0, 1, run)
	c.Flags().BoolVar(&enable, "enable", false, "they may")
	c.Flags().BoolVar(&disable, "disable", false, "they may not; those that run stay")
	c.Flags().BoolVar(&self, "self", false, "the agent's own node")
	return c
}

// nodeOf returns the node that args name, or with self that of the agent. args holds one word at most. Errors:
// Invalid unless exactly one of the two is given; NotFound; the API's.
func nodeOf(ctx context.Context, c *api.Client, args []string, self bool) (*drover.Node, error) {
	if self == (len(args) == 1) {
		return nil, drover.Errorf(drover.Invalid, "name a node, or give -self")
	}
	if !self {
		return c.Node(ctx, args[0])
	}
	id, err := c.LocalNode(ctx)
	if err != nil {
		return nil, err
	}
	return c.Node(ctx, id)
}

// drainFlags are the flags of "drover node drain". Names and defaults are Nomad's.
type drainFlags struct {
	enable, disable, keepIneligible, detach, self, yes, monitor, dryRun bool

	// What is kept of it beside the node.
	message string
	meta    []string

	// Of the drain itself.
	force, noDeadline, ignoreSystem, moveBatch bool
	deadline                                   time.Duration
}

// spec returns the drain that the flags ask for. Nomad's API has no fields for the extremes: a deadline below 0 stops
// everything at once, and 0 waits for ever. -force comes before -no-deadline.
func (f *drainFlags) spec() *drover.DrainSpec {
	spec := &drover.DrainSpec{Deadline: f.deadline, IgnoreSystemJobs: f.ignoreSystem, MoveBatch: f.moveBatch}
	switch {
	case f.force:
		spec.Deadline = -1
	case f.noDeadline:
		spec.Deadline = 0
	}
	return spec
}

// drainCommand is "drover node drain". Ctrl-C ends following, not the drain.
func drainCommand(app *term.App) *cobra.Command {
	f := &drainFlags{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		return drain(ctx, app, c, f, args)
	}
	c := term.NomadCommand(app, "drain (-enable|-disable) NODE", "Move all allocations off a node", 0, 1, run)
	term.Describe(c, `
Moves the allocations of the node to others, as their migrate blocks say, and follows it until the node is empty. The node
stays ineligible until -disable or 'drover node eligibility -enable'. Batch work may run on until the deadline; what is not done
then is stopped, and not begun anew elsewhere unless -move-batch says so.`,
		`drover node drain -enable 91c3
drover node drain -dry-run 91c3
drover node drain -enable -deadline 10m 91c3
drover node drain -disable 91c3`)
	fl := c.Flags()
	fl.BoolVar(&f.enable, "enable", false, "begin")
	fl.BoolVar(&f.disable, "disable", false, "end the drain")
	fl.DurationVar(&f.deadline, "deadline", time.Hour, "after this what is left is stopped")
	fl.BoolVar(&f.noDeadline, "no-deadline", false, "wait as long as it takes")
	fl.BoolVar(&f.force, "force", false, "stop everything now")
	fl.BoolVar(&f.ignoreSystem, "ignore-system", false, "leave system jobs")
	fl.BoolVar(&f.moveBatch, "move-batch", false, "at the deadline begin batch work anew on other nodes")
	fl.BoolVar(&f.keepIneligible, "keep-ineligible", false, "with -disable: place nothing on it yet")
	fl.BoolVar(&f.detach, "detach", false, "do not follow")
	fl.BoolVar(&f.dryRun, "dry-run", false, "only say what would become of each allocation, as things are now")
	fl.BoolVar(&f.monitor, "monitor", false, "follow a drain that goes on; it is followed anyway if it begins here")
	fl.StringVarP(&f.message, "message", "m", "", "why; kept with the node as the drain's metadata \"message\"")
	fl.StringArrayVar(&f.meta, "meta", nil, "metadata of the drain, key=value; can be repeated")
	fl.BoolVar(&f.self, "self", false, "the agent's own node")
	fl.BoolVar(&f.yes, "yes", false, "accepted for Nomad's sake: nothing is asked here")
	return c
}

// one checks that the flags say one thing to do. Errors: Invalid.
func (f *drainFlags) one() error {
	if f.enable == f.disable && (f.enable || !f.monitor && !f.dryRun) || f.dryRun && (f.disable || f.monitor) {
		return drover.Errorf(drover.Invalid, "give either -enable or -disable, or -monitor alone, or -dry-run")
	}
	return nil
}

// drain begins or ends the drain of a node, and follows one that it began. Errors: Invalid, NotFound; the API's;
// those of followDrain.
func drain(ctx context.Context, app *term.App, c *api.Client, f *drainFlags, args []string) error {
	if err := f.one(); err != nil {
		return err
	}
	meta, err := term.KeyValues("-meta", f.meta)
	if err != nil {
		return err
	}
	if f.message != "" {
		meta["message"] = f.message
	}
	n, err := nodeOf(ctx, c, args, f.self)
	if err != nil {
		return err
	}
	switch {
	case f.dryRun:
		return planDrain(ctx, app, c, n, f.spec())
	case f.enable || f.disable:
	case n.DrainStrategy == nil:
		return drover.Errorf(drover.Conflict, "node %s (%s) is not draining", term.ShortID(n.ID), n.Name)
	default:
		return followDrain(ctx, app, c, n)
	}
	// A body without DrainSpec ends the drain, as in Nomad.
	body := map[string]any{"NodeID": n.ID, "MarkEligible": f.disable && !f.keepIneligible}
	if f.enable {
		body["DrainSpec"] = f.spec()
	}
	if len(meta) > 0 {
		body["Meta"] = meta
	}
	if err := c.Put(ctx, "/v1/node/"+n.ID+"/drain", nil, body, nil); err != nil {
		return err
	}
	if f.disable {
		_, err = fmt.Fprintf(app.Out, "Node %s (%s) is no longer draining.\n", term.ShortID(n.ID), n.Name)
		return err
	}
	fmt.Fprintf(app.Out, "==> Node %s (%s) is draining\n", term.ShortID(n.ID), n.Name)
	if f.detach {
		return nil
	}
	return followDrain(ctx, app, c, n)
}

// followDrain prints how many allocations are left, at each change, until none is, and that the node is down: then what it had counts
// as lost. System jobs do not count: they leave last, or stay. A node that is purged meanwhile is drained; that it can be is said once
// nothing changed for a minute. Errors: the API's; Conflict if the drain was ended before.
func followDrain(ctx context.Context, app *term.App, c *api.Client, n *drover.Node) error {
	var index uint64
	// -1 makes the first count a change, so that it is printed even if it is 0.
	left, ended, said := -1, false, drainNotes{app, n, false, false}
	for {
		var allocs []*drover.Allocation
		next, err := c.Get(ctx, "/v1/node/"+n.ID+"/allocations", api.Blocking(c.Anywhere(), index), &allocs)
		if err != nil {
			return err
		}
		allocs = slices.DeleteFunc(allocs, func(v *drover.Allocation) bool {
			return v.ClientTerminal() || v.Job != nil && (v.Job.Type == drover.JobTypeSystem || v.Job.Type == drover.JobTypeSysBatch)
		})
		still := next == index && len(allocs) == left
		index = next
		if len(allocs) != left {
			left = len(allocs)
			fmt.Fprintf(app.Out, "    %s left\n", term.Plural(left, "allocation"))
		}
		var now drover.Node
		if _, err := c.Get(ctx, "/v1/node/"+n.ID, nil, &now); drover.CodeOf(err) == drover.NotFound {
			_, err := fmt.Fprintf(app.Out, "==> Node %s was purged\n", term.ShortID(n.ID))
			return err
		} else if err != nil {
			return err
		}
		if left > 0 {
			said.add(&now, still)
		}
		switch {
		case left == 0:
			_, err := fmt.Fprintf(app.Out, "==> Node %s is drained\n", term.ShortID(n.ID))
			return err
		case ended:
			return drover.Errorf(drover.Conflict, "somebody ended the drain of node %s: %s left", term.ShortID(n.ID),
				term.Plural(left, "allocation"))
		case now.DrainStrategy == nil:
			ended, index = true, 0 // the last allocations may have ended since they were counted
		}
	}
}

// drainNotes are what was said of a drain that does not end; each is said once.
type drainNotes struct {
	app           *term.App
	node          *drover.Node
	down, advised bool
}

// add says what keeps the drain going on: the node as it is now, and whether nothing changed for a while.
func (s *drainNotes) add(now *drover.Node, still bool) {
	if now.Status == drover.NodeStatusDown && !s.down {
		fmt.Fprintf(s.app.Out, "    the node is down: what it has is lost\n")
		s.down = true
	}
	if still && !s.advised && now.DrainStrategy != nil {
		fmt.Fprintf(s.app.Out, "    nothing changes: if the machine is gone, 'drover node purge %s' has it all placed elsewhere\n",
			term.ShortID(s.node.ID))
		s.advised = true
	}
}

// planDrain says what a drain would do. Nothing is changed.
func planDrain(ctx context.Context, app *term.App, c *api.Client, n *drover.Node, spec *drover.DrainSpec) error {
	var plan drover.DrainPlan
	if _, err := c.Get(ctx, "/v1/drain/plan", spec.PlanQuery(n.ID), &plan); err != nil {
		return err
	}
	rows := make([][]string, 0, len(plan.Moves))
	for _, m := range plan.Moves {
		where := strings.Join(m.Why, "; ")
		if m.ToNodeID != "" {
			where = fmt.Sprintf("%s (%s)", term.ShortID(m.ToNodeID), m.ToNodeName)
		}
		rows = append(rows, []string{term.ShortID(m.AllocID), m.Name, m.Namespace, m.Fate, where})
	}
	err := term.Table(app.Out, "Nothing runs on it.", "Allocation|Name|Namespace|Fate|Where, or why not", rows)
	if err != nil || plan.Hidden == 0 {
		return err
	}
	_, err = fmt.Fprintf(app.Out, "%d more are of jobs that the token may not read.\n", plan.Hidden)
	return err
}
