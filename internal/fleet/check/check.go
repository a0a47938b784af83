package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Config is what is tried.
type Config struct {
	ProviderName string
	Policy       *fleet.Policy
	Offering     fleet.Offering
	Owner        string // must not be that of a fleet: all of its machines are taken for leftovers of earlier checks
	Intent       string
	UserData     string
	Within       time.Duration // from the create until the agent calls
	Keep         bool
}

// Deps is what a check needs of others.
type Deps struct {
	Provider provider.Provider
	Clock    clock.Clock
	// Home waits until the machine's agent calls home, and returns its node.
	Home func(ctx context.Context) (*drover.Node, error)
	// Bootstrap makes the machine ours over ssh; nil = its user data does.
	Bootstrap func(ctx context.Context, m provider.Machine, report func(fleet.CheckStep)) error
}

const (
	lookEvery = time.Second
	// goneWithin is how long a machine may take to go.
	goneWithin = 10 * time.Minute
	// tries of a call whose error may pass.
	tries = 5
)

// Run runs the check. Whatever happens, ctx ending included, the machine is destroyed, unless it is to be kept.
// Errors: those of the step that failed, with the field to change.
func Run(ctx context.Context, cfg Config, deps Deps, report func(fleet.CheckStep)) error {
	c := &check{Config: cfg, Deps: deps, report: report, at: deps.Clock.Now()}
	err := c.try(ctx)
	if !c.created || cfg.Keep && err == nil {
		return err
	}
	endCtx, cancel := c.Clock.WithTimeout(context.WithoutCancel(ctx), goneWithin)
	defer cancel()
	return errors.Join(err, c.step("destroy", func() (string, error) { return c.destroy(endCtx) }))
}

// check is one under way.
type check struct {
	Config
	Deps
	report  func(fleet.CheckStep)
	at      time.Time // when the step began
	created bool      // or it may be
	machine provider.Machine
}

// step does one and tells of it.
func (c *check) step(name string, do func() (string, error)) error {
	c.at = c.Clock.Now()
	says, err := do()
	s := fleet.CheckStep{Name: name, Says: says, Took: c.Clock.Now().Sub(c.at)}
	if err != nil {
		err = c.told(name, err)
		s.Error = err.Error()
	}
	c.report(s)
	return err
}

func (c *check) try(ctx context.Context) error {
	bootCtx, cancel := c.Clock.WithTimeout(ctx, c.Within)
	defer cancel()
	for _, s := range []struct {
		name string
		do   func() (string, error)
	}{
		{"reach", func() (string, error) { return c.reach(ctx) }},
		{"create", func() (string, error) { return c.create(ctx) }},
		{"list", func() (string, error) { return c.list(ctx) }},
		{"boot", func() (string, error) { return c.boot(bootCtx) }},
		{"home", func() (string, error) { return c.home(bootCtx) }},
		{"tag", func() (string, error) { return c.tag(ctx) }},
	} {
		if err := c.step(s.name, s.do); err != nil {
			return err
		}
	}
	return nil
}

// reach lists, and clears away what an earlier check left.
func (c *check) reach(ctx context.Context) (string, error) {
	left, err := c.all(ctx)
	if err != nil {
		return "", err
	}
	n := 0
	for _, m := range left {
		if dead(m.State) {
			continue
		}
		if err := c.again(ctx, func() error { return c.Provider.Destroy(ctx, m.ID) }); err != nil && provider.KindOf(err) != provider.NotFound {
			return "", fmt.Errorf("destroying %s, which an earlier check left: %w", m.ID, err)
		}
		n++
	}
	if n > 0 {
		return fmt.Sprintf("the provider answers; %d machines that an earlier check left are destroyed", n), nil
	}
	return "the provider answers", nil
}

func (c *check) create(ctx context.Context) (string, error) {
	tags := map[string]string{}
	maps.Copy(tags, c.Policy.Tags)
	maps.Copy(tags, map[string]string{fleet.TagOwner: c.Owner, fleet.TagPool: c.Policy.Name, fleet.TagOffering: c.Offering.Key})
	req := provider.Request{
		Offering: c.Offering, Image: c.Policy.Image, Tags: tags,
		Intents: []provider.Intent{{ID: c.Intent, UserData: c.UserData, Tags: map[string]string{fleet.TagIntent: c.Intent}}},
	}
	err := c.again(ctx, func() error {
		if c.created && !c.Provider.Capabilities().Idempotent {
			return c.find(ctx)
		}
		c.created = true
		made, err := c.Provider.Create(ctx, req)
		if len(made) > 0 {
			c.machine = made[0]
		}
		return err
	})
	if k := provider.KindOf(err); err != nil && k != provider.Ambiguous && k != provider.Transient {
		c.created = false // it was refused
	}
	return fmt.Sprintf("%s: %s %s in %s for %.4g an hour", c.machine.ID, c.Offering.Type, c.Offering.Market, c.Offering.Zone,
		c.Offering.Price), err
}

// find looks for the machine of a create whose answer was lost.
func (c *check) find(ctx context.Context) error {
	list, err := c.all(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Intent == c.Intent && !dead(m.State) {
			c.machine = m
			return nil
		}
	}
	return &provider.Error{Kind: provider.Ambiguous, Message: "the answer to the create was lost, and the machine is not listed"}
}

// list waits until the machine is in the list, with its tags.
func (c *check) list(ctx context.Context) (string, error) {
	bound := c.Provider.Capabilities().Visible
	m, err := c.await(ctx, max(bound, 10*lookEvery), func(m provider.Machine) bool { return m.Intent == c.Intent })
	if err != nil {
		return "", fmt.Errorf("it is not in the list, or without its tags: %w", err)
	}
	for key, want := range map[string]string{fleet.TagOwner: c.Owner, fleet.TagPool: c.Policy.Name, fleet.TagIntent: c.Intent} {
		if m.Tags[key] != want {
			return "", drover.Errorf(drover.Internal, "tag %s is %q, not %q", key, m.Tags[key], want)
		}
	}
	if m.Type != c.Offering.Type {
		return "", drover.Errorf(drover.Internal, "its type is %s", m.Type)
	}
	return fmt.Sprintf("it is listed with %d tags", len(m.Tags)), nil
}

// boot waits until the machine runs, and makes it ours if its user data do not.
func (c *check) boot(ctx context.Context) (string, error) {
	m, err := c.await(ctx, c.Within, func(m provider.Machine) bool {
		return m.State == provider.Running && (m.Address != "" || c.Bootstrap == nil)
	})
	if err != nil {
		return "", c.withConsole(ctx, err)
	}
	says := "it runs"
	if m.Address != "" {
		says += " at " + m.Address
	}
	if c.Bootstrap == nil {
		return says, nil
	}
	return says, c.withConsole(ctx, c.Bootstrap(ctx, m, c.report))
}

// home waits for the agent, and compares the node with what was ordered.
func (c *check) home(ctx context.Context) (string, error) {
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with watchCtx
		_, err := c.await(watchCtx, c.Within, func(m provider.Machine) bool { return dead(m.State) })
		if err == nil {
			cancel()
		}
		ended <- err
	}()
	n, err := c.Home(watchCtx)
	cancel()
	if gone := <-ended; gone == nil && err != nil {
		err = drover.Errorf(drover.Unavailable, "the machine ended before its agent called home")
	}
	if err != nil {
		return "", c.withConsole(ctx, err)
	}
	return compare(n, c.Offering), nil
}

// compare tells what the node is, and where it is less than the offering promises.
func compare(n *drover.Node, o fleet.Offering) string {
	var drivers []string
	for name, d := range n.Drivers {
		if d.Detected && d.Healthy {
			drivers = append(drivers, name)
		}
	}
	have := n.Total()
	text := fmt.Sprintf("node %s with %d MHz, %d MB of memory, %d MB of disk; drivers: %s", n.Name, have.CPU, have.MemoryMB, have.DiskMB,
		words(drivers))
	const slack = 0.9 // firmware and kernel take some
	for _, v := range []struct {
		what       string
		have, want int64
	}{{"cpu", have.CPU, o.Capacity.CPU}, {"memory", have.MemoryMB, o.Capacity.MemoryMB}, {"disk", have.DiskMB, o.Capacity.DiskMB}} {
		if float64(v.have) < slack*float64(v.want) {
			text += fmt.Sprintf("; ATTENTION: type %s promises %d of %s: change it in the pool, or work that counts on it will not fit", o.Type,
				v.want, v.what)
		}
	}
	return text
}

// tag sets one and reads it back.
func (c *check) tag(ctx context.Context) (string, error) {
	set := map[string]string{fleet.TagBehavior: string(fleet.BehaviorHold)}
	if err := c.again(ctx, func() error { return c.Provider.SetTags(ctx, c.machine.ID, set) }); err != nil {
		return "", err
	}
	_, err := c.await(ctx, max(c.Provider.Capabilities().Visible, 10*lookEvery), func(m provider.Machine) bool {
		return m.Tags[fleet.TagBehavior] == string(fleet.BehaviorHold) && m.Tags[fleet.TagIntent] == c.Intent
	})
	if err != nil {
		return "", fmt.Errorf("a tag that was set is not read back: %w", err)
	}
	return "a tag is set and read back", nil
}

// destroy ends the machine and waits until it is gone.
func (c *check) destroy(ctx context.Context) (string, error) {
	if c.machine.ID == "" {
		if err := c.find(ctx); err != nil {
			return "there is none", nil //nolint:nilerr // the create was lost, and nothing came of it
		}
	}
	err := c.again(ctx, func() error { return c.Provider.Destroy(ctx, c.machine.ID) })
	if err != nil && provider.KindOf(err) != provider.NotFound {
		return "", c.left(err)
	}
	for {
		list, err := c.all(ctx)
		alive := false
		for _, m := range list {
			alive = alive || m.ID == c.machine.ID && m.State != provider.Terminated
		}
		if err == nil && !alive {
			return c.machine.ID + " is gone", nil
		}
		if !clock.Sleep(ctx, c.Clock, lookEvery) {
			return "", c.left(errors.Join(err, context.Cause(ctx)))
		}
	}
}

// left is the error of a check that could not destroy its machine: the user has to hear of that above all.
func (c *check) left(err error) error {
	return fmt.Errorf("machine %s MAY STILL RUN AND COST, destroy it by hand: %w", c.machine.ID, err)
}

// dead reports whether the machine has ended or is about to.
func dead(s provider.State) bool { return s == provider.Terminated || s == provider.Terminating }
