package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// all lists every page.
func (c *check) all(ctx context.Context) (list []provider.Machine, err error) {
	for page := ""; ; {
		var some []provider.Machine
		next := ""
		err := c.again(ctx, func() (err error) {
			some, next, err = c.Provider.List(ctx, page)
			return err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
		if page = next; next == "" {
			return list, nil
		}
	}
}

// await lists until the machine is as it shall be.
func (c *check) await(ctx context.Context, within time.Duration, ok func(provider.Machine) bool) (m provider.Machine, err error) {
	ctx, cancel := c.Clock.WithTimeout(ctx, within)
	defer cancel()
	for {
		list, err := c.all(ctx)
		if err != nil && ctx.Err() == nil {
			return m, err
		}
		for _, m := range list {
			if m.ID == c.machine.ID && ok(m) {
				c.machine = m
				return m, nil
			}
		}
		if !clock.Sleep(ctx, c.Clock, lookEvery) {
			return m, drover.Errorf(drover.Unavailable, "not within %v", within)
		}
	}
}

// again repeats a call whose error may pass.
func (c *check) again(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		wait := time.Second
		var e *provider.Error
		switch errors.As(err, &e); {
		case err == nil, n == tries, ctx.Err() != nil:
			return err
		case e != nil && e.Kind == provider.RateLimited:
			wait = max(wait, e.RetryAt.Sub(c.Clock.Now()))
		case provider.KindOf(err) != provider.Ambiguous && provider.KindOf(err) != provider.Transient:
			return err
		}
		if !clock.Sleep(ctx, c.Clock, wait) {
			return err
		}
	}
}

// withConsole adds the end of what the machine wrote, if the provider shows it.
func (c *check) withConsole(ctx context.Context, err error) error {
	shows, ok := c.Provider.(provider.Consoler)
	if err == nil || !ok {
		return err
	}
	ctx, cancel := c.Clock.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	text, e := shows.Console(ctx, c.machine.ID)
	if e != nil || len(strings.TrimSpace(string(text))) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	const most = 10
	return fmt.Errorf("%w\nits console says:\n  %s", err, strings.Join(lines[max(0, len(lines)-most):], "\n  "))
}

// told adds to a step's error what to change.
func (c *check) told(step string, err error) error {
	var e *provider.Error
	if !errors.As(err, &e) {
		if step == "home" {
			return drover.Errorf(drover.CodeOf(err), "the agent does not call home: can the machine reach us at that address, "+
				"and does its image or user data start an agent? %w", err)
		}
		return err
	}
	name, pool := "fleet.provider."+c.ProviderName, "fleet.pool."+c.Policy.Name
	code := provider.CodeOf(err)
	switch e.Kind {
	case provider.Auth:
		return drover.Errorf(code, "%s: the credentials are refused, or do not allow this: %w", name, err)
	case provider.Transient, provider.Ambiguous:
		return drover.Errorf(code, "%s: it can't be reached, or does not answer as it should: %w; check its endpoint and region", name, err)
	case provider.Config:
		return drover.Errorf(code, "%s: the provider refuses such a machine: %w; check image, type, zones and user data", pool, err)
	case provider.Quota:
		return drover.Errorf(code, "%s: %w; ask the provider for more, or lower what runs", pool, err)
	case provider.Capacity:
		return drover.Errorf(code, "%s: %w; try another -type or -zone", pool, err)
	case provider.NotFound, provider.RateLimited:
	}
	return drover.Errorf(code, "%s: %w", name, err)
}

func words(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
