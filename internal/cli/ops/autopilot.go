package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

const autopilotPath = "/v1/operator/autopilot/configuration"

// autopilotCommand is "drover operator autopilot".
func autopilotCommand(app *term.App) *cobra.Command {
	return term.Group("autopilot", "See how the servers are, and configure who votes", autopilotGetCommand(app), autopilotSetCommand(app),
		autopilotHealthCommand(app))
}

// autopilotGetCommand is "drover operator autopilot get-config".
func autopilotGetCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "get-config", "Show how servers are kept healthy", 0, 0,
		func(ctx context.Context, c *api.Client, _ []string) error {
			var a cluster.Autopilot
			if _, err := c.Get(ctx, autopilotPath, nil, &a); err != nil {
				return err
			}
			if done, err := o.Data(app.Out, a); done {
				return err
			}
			return term.Facts(app.Out, "CleanupDeadServers", fmt.Sprint(a.CleanupDeadServers),
				"LastContactThreshold", a.LastContactThreshold.String(), "MaxTrailingLogs", fmt.Sprint(a.MaxTrailingLogs),
				"MinQuorum", fmt.Sprint(a.MinQuorum),
				"ServerStabilizationTime", a.ServerStabilizationTime.String(), "EnableRedundancyZones", fmt.Sprint(a.EnableRedundancyZones),
				"DisableUpgradeMigration", fmt.Sprint(a.DisableUpgradeMigration), "EnableCustomUpgrades", fmt.Sprint(a.EnableCustomUpgrades))
		})
	o.Bind(c.Flags())
	return c
}

// autopilotSetCommand is "drover operator autopilot set-config".
func autopilotSetCommand(app *term.App) *cobra.Command {
	var a cluster.Autopilot
	c := term.Command(app, "set-config", "Change how servers are kept healthy", 0, 0, nil)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return autopilotSet(app, cmd, a) }
	term.Describe(c, "Changes what flags say, and leaves the rest as it is.", `drover operator autopilot set-config -cleanup-dead-servers=false
drover operator autopilot set-config -server-stabilization-time 30s -min-quorum 3`)
	fl := c.Flags()
	fl.BoolVar(&a.CleanupDeadServers, "cleanup-dead-servers", false, "remove servers that failed, while the others are a quorum")
	fl.DurationVar(&a.LastContactThreshold, "last-contact-threshold", 0, "a server that the leader did not reach for longer is unhealthy")
	fl.Uint64Var(&a.MaxTrailingLogs, "max-trailing-logs", 0, "a server that is more entries behind is unhealthy")
	fl.UintVar(&a.MinQuorum, "min-quorum", 0, "never remove servers below so many voters")
	fl.DurationVar(&a.ServerStabilizationTime, "server-stabilization-time", 0, "how long a new server is healthy before it may vote")
	fl.BoolVar(&a.EnableRedundancyZones, "enable-redundancy-zones", false, "one voter in each redundancy zone")
	fl.BoolVar(&a.DisableUpgradeMigration, "disable-upgrade-migration", false, "without an effect: servers are not migrated by version")
	fl.BoolVar(&a.EnableCustomUpgrades, "enable-custom-upgrades", false, "without an effect")
	return c
}

// autopilotSet reads the configuration, changes what flags say, and writes it if nobody else changed it meanwhile. A flag that was
// given as false or 0 is a change too. Errors: Conflict; the API's.
func autopilotSet(app *term.App, cmd *cobra.Command, want cluster.Autopilot) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	var a cluster.Autopilot
	if _, err := c.Get(cmd.Context(), autopilotPath, nil, &a); err != nil {
		return err
	}
	for flag, set := range map[string]func(){
		"cleanup-dead-servers":      func() { a.CleanupDeadServers = want.CleanupDeadServers },
		"last-contact-threshold":    func() { a.LastContactThreshold = want.LastContactThreshold },
		"max-trailing-logs":         func() { a.MaxTrailingLogs = want.MaxTrailingLogs },
		"min-quorum":                func() { a.MinQuorum = want.MinQuorum },
		"server-stabilization-time": func() { a.ServerStabilizationTime = want.ServerStabilizationTime },
		"enable-redundancy-zones":   func() { a.EnableRedundancyZones = want.EnableRedundancyZones },
		"disable-upgrade-migration": func() { a.DisableUpgradeMigration = want.DisableUpgradeMigration },
		"enable-custom-upgrades":    func() { a.EnableCustomUpgrades = want.EnableCustomUpgrades },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	var updated bool
	q := api.Query("cas", fmt.Sprint(a.ModifyIndex)) // what we read is what we change
	if err := c.Put(cmd.Context(), autopilotPath, q, a, &updated); err != nil {
		return err
	}
	if !updated {
		return drover.Errorf(drover.Conflict, "somebody else changed the configuration meanwhile: try again")
	}
	_, err = fmt.Fprintln(app.Out, "Autopilot's configuration is changed.")
	return err
}

// health is the part of the API's answer that is printed.
type health struct {
	Healthy          bool
	FailureTolerance int
	Servers          []struct {
		ID, Name, Address, SerfStatus, Version, LastContact string
		Leader, Healthy, Voter                              bool
		LastTerm, LastIndex                                 uint64
		StableSince                                         time.Time
	}
	Leader               string
	Voters, ReadReplicas []string
	RedundancyZones      map[string]struct{ Servers, Voters []string }
}

// autopilotHealthCommand is "drover operator autopilot health". Servers that are not healthy are an answer, and exit with 1.
func autopilotHealthCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		var h health
		_, err := c.Get(ctx, "/v1/operator/autopilot/health", nil, &h)
		if drover.CodeOf(err) == drover.RateLimited { // so the API says that it is not well; the body is the same
			err = json.Unmarshal([]byte(err.Error()), &h)
		}
		if err != nil {
			return err
		}
		done, err := o.Data(app.Out, h)
		if err == nil && !done {
			err = h.print(app)
		}
		if err == nil && !h.Healthy {
			return &term.ExitError{Code: term.ExitFailure}
		}
		return err
	}
	c := term.NomadCommand(app, "health", "Show how the servers are; exits with 1 if one is not well", 0, 0, run)
	o.Bind(c.Flags())
	return c
}

func (h *health) print(app *term.App) error {
	if err := term.Facts(app.Out, "Healthy", term.YesNo(h.Healthy), "Failure tolerance", fmt.Sprint(h.FailureTolerance)); err != nil {
		return err
	}
	var rows [][]string
	for _, s := range h.Servers {
		since := ""
		if !s.StableSince.IsZero() {
			since = s.StableSince.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{
			s.Name, s.ID, s.Address, s.SerfStatus, s.Version, term.YesNo(s.Leader), term.YesNo(s.Voter), term.YesNo(s.Healthy), s.LastContact,
			fmt.Sprint(s.LastTerm), fmt.Sprint(s.LastIndex), since,
		})
	}
	const heading = "Name|ID|Address|Gossip|Version|Leader|Voter|Healthy|Last contact|Last term|Last index|Stable since"
	return term.Table(app.Out, "Nobody judged the servers yet.", heading, rows)
}
