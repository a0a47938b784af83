package fleet

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/config"
)

// Local are the parts of the fleet that run in this process instead of an agent's. A nil one is refused when it is asked for.
type Local struct {
	// Check tries a pool of the configuration with one real machine, and reports each step.
	Check func(ctx context.Context, cfg *config.Agent, ask fleet.Check, report func(fleet.CheckStep)) error
	// Simulate runs a policy of the fleet on virtual time.
	Simulate func(ctx context.Context, ask fleet.Simulation) ([]fleet.Simulated, error)
}

// Command is "drover fleet".
func Command(app *term.App, local Local) *cobra.Command {
	c := term.Group("fleet", "Buy and return machines as the work asks",
		poolsCommand(app), putCommand(app), applyCommand(app), deleteCommand(app), pauseCommand(app, "pause"), pauseCommand(app, "resume"),
		listCommand(app), statusCommand(app), explainCommand(app), planCommand(app),
		actCommand(app, "hold", "Keep machines, without new work"), actCommand(app, "drain", "Return machines as soon as they are idle"),
		actCommand(app, "run", "Let machines work again"), actCommand(app, "kill", "Destroy machines now, with what runs on them"),
		interruptCommand(app),
		auditCommand(app), timelineCommand(app), costCommand(app), simulateCommand(app, local), checkCommand(app, local))
	term.Describe(c, `The fleet buys machines when work finds no place, and returns them when they are idle. Pools say which machines, how many
and for how much; they are in the agent's configuration (fleet block) or set with 'drover fleet put'.`,
		`drover fleet pools
drover fleet plan
drover fleet explain 3f2a
drover fleet simulate pool.hcl -workload bursty -compare`)
	return c
}

// newClient returns the client of the fleet's API.
func newClient(app *term.App) (*client, error) {
	c, err := app.Nomad()
	return &client{c}, err
}

// command is a command that asks an agent by the fleet's API; run gets the client.
func command(
	app *term.App, use, short string, least, most int, run func(ctx context.Context, c *client, args []string) error,
) *cobra.Command {
	return term.NomadCommand(app, use, short, least, most, func(ctx context.Context, c *api.Client, args []string) error {
		return run(ctx, &client{c}, args)
	})
}

// client asks the fleet's part of the native API.
type client struct{ *api.Client }

// get reads a JSON answer into out. Errors: the API's.
func (c *client) get(ctx context.Context, path string, query url.Values, out any) error {
	_, err := c.Client.Get(ctx, path, query, out)
	return err
}

// put sends in as JSON; the answer's body is of no interest. Errors: the API's.
func (c *client) put(ctx context.Context, path string, in any) error {
	return c.Client.Put(ctx, path, nil, in, nil)
}

// poolsCommand is "drover fleet pools": pools of the configuration and those made over the API.
func poolsCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *client, _ []string) error {
		var list []fleet.PoolStatus
		if err := c.get(ctx, "/v1/fleet/pools", nil, &list); err != nil {
			return err
		}
		return term.Show(app, o, list, term.Listing[fleet.PoolStatus]{
			None:    "There are none: give the agent a fleet block with pools, or use 'drover fleet put'.",
			Heading: "Name|Provider|Node pool|Size|Machines|Waiting|Per hour|Today|Note",
			Row: func(p fleet.PoolStatus) []string {
				return []string{
					p.Name, p.Policy.Provider, p.Policy.NodePool, sizes(&p), states(p.Machines), waitingText(p.Waiting),
					money(p.PerHour), money(p.Today), poolNote(&p),
				}
			},
		})
	}
	c := command(app, "pools", "List pools with their machines and costs", 0, 0, run)
	o.Bind(c.Flags())
	return c
}

// sizes returns the bounds of a pool's size as "2-10", or "2-any" without a maximum. The lower one may come from a
// schedule.
func sizes(p *fleet.PoolStatus) string {
	most := "any"
	if p.Policy.Max > 0 {
		most = fmt.Sprint(p.Policy.Max)
	}
	return fmt.Sprintf("%d-%s", p.Least, most)
}

// states returns a pool's machines by state, as "2 active, 1 booting". It is sorted, since maps have no order.
func states(machines map[string]int) string {
	var out []string
	for s, n := range machines {
		out = append(out, fmt.Sprintf("%d %s", n, s))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// waitingText returns how many pieces of work wait for the pool; "" for none.
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

// poolNote returns all that an operator should know of a pool: a provider that fails, a budget that is exceeded,
// machines that are missing, an end that was ordered, and pauses with their reason. A pause comes from the policy or from an order.
func poolNote(p *fleet.PoolStatus) string {
	var out []string
	if p.Problem != "" {
		out = append(out, p.Problem)
	}
	if p.Alert != "" {
		out = append(out, p.Alert)
	}
	if p.Lacks != "" {
		out = append(out, p.Lacks)
	}
	if p.Failed != "" {
		out = append(out, p.Failed)
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

// money returns an amount for a cell of a table; "" for 0, since tables show it as a dash.
func money(v float64) string {
	if v == 0 {
		return ""
	}
	return fleet.Money(v)
}

// listCommand is "drover fleet list". A machine's age counts from when the cloud began to bill.
func listCommand(app *term.App) *cobra.Command {
	o, pool, state := &term.Output{}, "", ""
	run := func(ctx context.Context, c *client, _ []string) error {
		var list []fleet.Instance
		if err := c.get(ctx, "/v1/fleet/instances", url.Values{"pool": {pool}, "state": {state}}, &list); err != nil {
			return err
		}
		return term.Show(app, o, list, term.Listing[fleet.Instance]{
			None: "There are none.", Heading: "ID|Pool|Type|Zone|Market|State|Behavior|Per hour|Cost|Age|Work|Node|Reason",
			Row: func(i fleet.Instance) []string {
				return []string{
					o.ID(i.ID), i.Pool, i.Type, i.Zone, i.Market, i.State.String(), string(i.Behavior), money(i.Price), money(i.Charged),
					strings.TrimSuffix(term.Ago(since(&i)), " ago"), fmt.Sprint(i.Work), o.ID(i.NodeID), i.Reason,
				}
			},
		})
	}
	c := command(app, "list", "List machines with state, price, age, work and reason", 0, 0, run)
	o.Bind(c.Flags())
	c.Flags().StringVar(&pool, "pool", "", "only of this pool")
	c.Flags().StringVar(&state, "state", "", "only in this state: booting, active, draining, …")
	return c
}

// since returns when the machine's life began, in unix nanoseconds: when the cloud began to bill, else its plan. It
// is 0 if neither is known.
func since(i *fleet.Instance) int64 {
	for _, t := range []time.Time{i.CreatedAt, i.PlannedAt} {
		if !t.IsZero() {
			return t.UnixNano()
		}
	}
	return 0
}
