package fleet

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/agent"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
)

// checkCommand is "drover fleet check": it tries a provider with one real machine. It needs the configuration, not a
// running agent. Its exit code is 1 if a step failed.
func checkCommand(app *term.App, local Local) *cobra.Command {
	o, ask, spot, configs := &term.Output{}, fleet.Check{}, false, []string(nil)
	run := func(ctx context.Context, app *term.App, args []string) error {
		if local.Check == nil {
			return drover.Errorf(drover.NotImplemented, "this program has no providers")
		}
		if len(configs) == 0 {
			return drover.Errorf(drover.Invalid, "-config: name the agent's configuration, which has the pool's provider")
		}
		cfg, err := agent.LoadConfig(configs)
		if err != nil {
			return err
		}
		if ask.Pool = args[0]; spot {
			ask.Market = fleet.MarketSpot
		}
		// A pool of the configuration comes first, as it does in the agent.
		ask.Policy = policyFromAPI(ctx, app, cfg, ask.Pool)
		var steps []fleet.CheckStep
		// Steps are told while they happen, since a boot takes minutes; JSON and templates get the whole list at the end.
		people := !o.JSON && o.Template == ""
		err = local.Check(ctx, cfg, ask, func(s fleet.CheckStep) {
			steps = append(steps, s)
			if people {
				showStep(app, s)
			}
		})
		if done, e := o.Data(app.Out, steps); done && e != nil {
			return e
		}
		if err == nil && people {
			fmt.Fprintf(app.Out, "Pool %q can buy machines.\n", ask.Pool)
		}
		// A failed step was printed with its error; the error that Check returns repeats it.
		if failed(steps) { // it was told
			return &term.ExitError{Code: term.ExitFailure}
		}
		return err
	}
	c := term.Command(app, "check POOL", "Buy one machine of a pool, look at it, return it", 1, 1, run)
	term.Describe(c, `
POOL is in the configuration, or was made over the API of the agent that -address names; its provider is in the configuration.
Each step is told with its time: reach, create, list, boot, home, tag, destroy. The machine's agent calls home to this command,
so no server needs to run; one that runs is not disturbed. The machine is destroyed whatever happens, Ctrl-C included, and so is
what an earlier check left. A machine costs what its provider charges.`,
		`drover fleet check web -config /etc/drover
drover fleet check web -config /etc/drover -type c5.large -zone eu-central-1b -spot
drover fleet check web -config /etc/drover -listen 0.0.0.0:4747 -dial 203.0.113.7:4747`)
	flags := c.Flags()
	o.Bind(flags)
	flags.StringArrayVar(&configs, "config", nil, "a file or folder of the agent's configuration; can be repeated")
	flags.StringVar(&ask.Type, "type", "", "instance type; default the cheapest")
	flags.StringVar(&ask.Zone, "zone", "", "zone; default any")
	flags.BoolVar(&spot, "spot", false, "buy on the spot market")
	flags.StringVar(&ask.Listen, "listen", "", "host:port where the machine's agent is awaited; default the rpc address and a free port")
	flags.StringVar(&ask.Dial, "dial", "", "host:port that the machine dials; default fleet.server's host, else -listen")
	flags.DurationVar(&ask.Within, "within", 0, "how long the agent may take to call; default the pool's boot_timeout")
	flags.BoolVar(&ask.Keep, "keep", false, "leave the machine running if all went well")
	return c
}

// policyFromAPI returns the policy of a pool that was made over the API. It returns nil if the configuration has the
// pool, or if no agent can be reached or knows it: the check itself then says that the pool is unknown.
func policyFromAPI(ctx context.Context, app *term.App, cfg *config.Agent, name string) *fleet.Policy {
	if cfg.Fleet != nil && slices.ContainsFunc(cfg.Fleet.Pools, func(p *machines.Pool) bool { return p.Name == name }) {
		return nil
	}
	c, err := newClient(app)
	if err != nil {
		return nil
	}
	var p fleet.PoolStatus
	if c.get(ctx, "/v1/fleet/pool/"+url.PathEscape(name), nil, &p) != nil {
		return nil
	}
	return p.Policy
}

// showStep prints one step: result, time, name and text. Further lines of an error are indented to the text's column.
func showStep(app *term.App, s fleet.CheckStep) {
	word, says := "ok    ", s.Says
	if s.Error != "" {
		word, says = "FAILED", strings.ReplaceAll(s.Error, "\n", "\n                        ")
	}
	fmt.Fprintf(app.Out, "%s  %8s  %-8s %s\n", word, s.Took.Round(time.Millisecond), s.Name, says)
}

// failed reports whether any step of the check failed.
func failed(steps []fleet.CheckStep) bool {
	for _, s := range steps {
		if s.Error != "" {
			return true
		}
	}
	return false
}
