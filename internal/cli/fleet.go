package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func (a *App) fleetCommand() *cobra.Command {
	c := group("fleet", "Buy and return machines as the work asks",
		a.fleetPoolsCommand(), a.fleetPutCommand(), a.fleetDeleteCommand(), a.fleetPauseCommand("pause"), a.fleetPauseCommand("resume"),
		a.fleetListCommand(), a.fleetStatusCommand(), a.fleetExplainCommand(), a.fleetPlanCommand(),
		a.fleetSteerCommand("hold", "Keep machines, without new work"), a.fleetSteerCommand("drain", "Return machines as soon as they are idle"),
		a.fleetSteerCommand("run", "Let machines work again"), a.fleetSteerCommand("kill", "Destroy machines now, with what runs on them"),
		a.fleetInterruptCommand(),
		a.fleetAuditCommand(), a.fleetCostCommand(), a.fleetSimulateCommand(), a.fleetCheckCommand())
	with(c, "The fleet buys machines when work finds no place, and returns them when they are idle. Pools say which machines, how many\nand for how much; they are in the agent's configuration (fleet block) or set with 'drover fleet put'.",
		"drover fleet pools\ndrover fleet plan\ndrover fleet explain 3f2a\ndrover fleet simulate pool.hcl -workload bursty -compare")
	return c
}

// asksFleet is asks; its errors say what the fleet's face says, in words.
func (a *App) asksFleet() (*fleetAPI, error) {
	c, err := a.asks()
	return &fleetAPI{c}, err
}

type fleetAPI struct{ *api }

func (c *fleetAPI) get(ctx context.Context, path string, query url.Values, out any) error {
	_, err := c.api.get(ctx, path, query, out)
	return inWords(err)
}

func (c *fleetAPI) put(ctx context.Context, path string, in any) error {
	return inWords(c.api.put(ctx, path, nil, in, nil))
}

// inWords takes the message out of an error's JSON.
func inWords(err error) error {
	if err == nil {
		return nil
	}
	var body struct{ Message string }
	if text := err.Error(); json.Unmarshal([]byte(text), &body) == nil && body.Message != "" {
		return drover.Errorf(drover.CodeOf(err), "%s", body.Message)
	}
	return err
}

func (a *App) fleetPoolsCommand() *cobra.Command {
	o := &output{}
	c := leaf("pools", "List pools with their machines and costs", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		var list []fleet.PoolStatus
		if err := c.get(ctx, "/v1/fleet/pools", nil, &list); err != nil {
			return err
		}
		if done, err := o.data(a.Out, list); done {
			return err
		}
		var rows [][]string
		for i := range list {
			p := &list[i]
			rows = append(rows, []string{
				p.Name, p.Policy.Provider, p.Policy.NodePool, sizes(p), states(p.Machines), waitingText(p.Waiting),
				money(p.PerHour), money(p.Today), poolNote(p),
			})
		}
		return table(a.Out, "There are none: give the agent a fleet block with pools, or use 'drover fleet put'.", "Name|Provider|Node pool|Size|Machines|Waiting|Per hour|Today|Note", rows)
	})
	o.bind(c.Flags())
	return c
}

func sizes(p *fleet.PoolStatus) string {
	most := "any"
	if p.Policy.Max > 0 {
		most = fmt.Sprint(p.Policy.Max)
	}
	return fmt.Sprintf("%d-%s", p.Least, most)
}

func states(machines map[string]int) string {
	var out []string
	for s, n := range machines {
		out = append(out, fmt.Sprintf("%d %s", n, s))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func waitingText(list []fleet.Waiting) string {
	n := 0
	for _, w := range list {
		n += w.Count
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func poolNote(p *fleet.PoolStatus) string {
	var out []string
	if p.Problem != "" {
		out = append(out, p.Problem)
	}
	if p.Alert != "" {
		out = append(out, p.Alert)
	}
	if p.Retiring {
		out = append(out, "ends with its last machine")
	}
	var paused []string
	if p.PauseCreates || p.Policy.PauseCreates {
		paused = append(paused, "creates")
	}
	if p.PauseDestroys || p.Policy.PauseDestroys {
		paused = append(paused, "destroys")
	}
	if len(paused) > 0 {
		text := strings.Join(paused, " and ") + " paused"
		if p.PauseReason != "" {
			text += ": " + p.PauseReason
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func money(v float64) string {
	if v == 0 {
		return ""
	}
	return fleet.Money(v)
}

func (a *App) fleetListCommand() *cobra.Command {
	o, pool, state := &output{}, "", ""
	c := leaf("list", "List machines with state, price, age, work and reason", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asksFleet()
		if err != nil {
			return err
		}
		var list []fleet.Instance
		if err := c.get(ctx, "/v1/fleet/instances", url.Values{"pool": {pool}, "state": {state}}, &list); err != nil {
			return err
		}
		if done, err := o.data(a.Out, list); done {
			return err
		}
		var rows [][]string
		for k := range list {
			i := &list[k]
			rows = append(rows, []string{
				o.id(i.ID), i.Pool, i.Type, i.Zone, i.Market, i.State.String(), string(i.Behavior), money(i.Price), money(i.Charged),
				strings.TrimSuffix(ago(since(i)), " ago"), fmt.Sprint(i.Work), o.id(i.NodeID), i.Reason,
			})
		}
		return table(a.Out, "There are none.", "ID|Pool|Type|Zone|Market|State|Behavior|Per hour|Cost|Age|Work|Node|Reason", rows)
	})
	o.bind(c.Flags())
	c.Flags().StringVar(&pool, "pool", "", "only of this pool")
	c.Flags().StringVar(&state, "state", "", "only in this state: booting, active, draining, …")
	return c
}

// since is when the machine's life began, in unix nanoseconds.
func since(i *fleet.Instance) int64 {
	for _, t := range []time.Time{i.CreatedAt, i.PlannedAt} {
		if !t.IsZero() {
			return t.UnixNano()
		}
	}
	return 0
}
