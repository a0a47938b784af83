package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/acl"
	"github.com/drover-project/drover/internal/cli/agent"
	"github.com/drover-project/drover/internal/cli/alloc"
	"github.com/drover-project/drover/internal/cli/certs"
	"github.com/drover-project/drover/internal/cli/completion"
	"github.com/drover-project/drover/internal/cli/doctor"
	"github.com/drover-project/drover/internal/cli/env"
	"github.com/drover-project/drover/internal/cli/fleet"
	"github.com/drover-project/drover/internal/cli/job"
	"github.com/drover-project/drover/internal/cli/manual"
	"github.com/drover-project/drover/internal/cli/node"
	"github.com/drover-project/drover/internal/cli/ops"
	"github.com/drover-project/drover/internal/cli/services"
	"github.com/drover-project/drover/internal/cli/tenants"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/top"
	"github.com/drover-project/drover/internal/cli/vars"
	"github.com/drover-project/drover/internal/cli/volume"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/internal/version"
)

// Parts are what the command line cannot have of an API: parts of an agent that run in this process.
type Parts struct {
	RunAgent agent.RunFunc
	Doctor   doctor.Probes
	Fleet    fleet.Local
	Archives ops.Archives
	Bench    func(app *term.App) []*cobra.Command            // "drover bench" and what it runs; nil: there is none
	Browse   func(ctx context.Context, address string) error // shows a page; nil: the system's way
}

// Main runs one command and returns the exit code. It prints the error, if it has a text, with what helps against it.
// An ExitError's code comes before that of the error's kind, and an interruption before both.
func Main(ctx context.Context, app *term.App, parts Parts, args []string) int {
	root := NewRoot(app, parts)
	root.SetArgs(doubleDashes(root, args))
	root.SetIn(app.In)
	root.SetOut(app.Out)
	root.SetErr(app.Err)
	completion.Command(app, root, args) //nolint:contextcheck // cobra hands commands their contexts
	if completion.Asked(args) {
		completion.Complete(app, root) //nolint:contextcheck // the same
	}
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && drover.CodeOf(err) == drover.Canceled:
		return term.InterruptCode(ctx)
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(app.Err, "Error:", text+advice(err))
	}
	var exit *term.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case drover.CodeOf(err) == drover.NotFound:
		return term.ExitNotFound
	case drover.CodeOf(err) == drover.Invalid:
		return term.ExitUsage
	}
	return term.ExitFailure
}

// advice returns what helps when an agent, or a proxy before it, wants another token; "" for other errors, or if the
// message names the variable already.
func advice(err error) string {
	switch code := drover.CodeOf(err); {
	case strings.Contains(err.Error(), "DROVER_TOKEN"):
		return ""
	case code == drover.Unauthorized:
		return "; give it with -token or DROVER_TOKEN (NOMAD_TOKEN)"
	case code == drover.Forbidden && strings.Contains(err.Error(), "Permission denied"):
		return "; -token or DROVER_TOKEN (NOMAD_TOKEN) gives another"
	}
	return ""
}

// NewRoot returns the command "drover" with all below it.
func NewRoot(app *term.App, parts Parts) *cobra.Command {
	root := term.Group("drover", "Run code on a herd of machines: jobs, executions in warm runners, a fleet")
	root.Args, root.SilenceErrors, root.SilenceUsage, root.Version = cobra.ArbitraryArgs, true, true, version.Version
	term.Describe(root, `Drover runs code on a herd of machines: jobs (with Nomad's job files and API), executions in warm runners, a fleet.

Flags may be written with one dash: -address is --address. Commands ask the agent at -address, DROVER_ADDR or NOMAD_ADDR.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such thing, 4 a job could not be placed in full, 130 Ctrl-C
(143 SIGTERM, 129 SIGHUP); commands that run a program exit with its code.`, `
drover agent -dev -demo
drover doctor
drover job init && drover job run example.nomad.hcl
drover env put scratch -image host && drover run scratch -- uname -a`)
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return drover.Errorf(drover.Invalid, "%w%s; '%s -help' lists the flags", err, meant(c, err), c.CommandPath())
	})
	root.AddCommand(agent.Command(app, parts.RunAgent), agent.ConfigCommand(app), doctor.Command(app, parts.Doctor), certs.Command(app),
		versionCommand(app), job.FormatCommand(app), manual.Command(app))
	if parts.Bench != nil {
		root.AddCommand(parts.Bench(app)...)
	}
	for _, c := range []*cobra.Command{
		job.Command(app), job.ScalingCommand(app), alloc.Command(app), node.Command(app), node.PluginCommand(app), ops.EvalCommand(app),
		ops.DeploymentCommand(app),
		services.Command(app), tenants.NamespaceCommand(app), tenants.QuotaCommand(app),
		tenants.AdmissionCommand(app, job.AdmissionTestCommand(app)),
		ops.OperatorCommand(app, parts.Archives), ops.SystemCommand(app), ops.ServerCommand(app), statusCommand(app),
		uiCommand(app, parts.Browse), top.Command(app),
		ops.EventCommand(app), ops.MonitorCommand(app), ops.AttentionCommand(app), ops.TopologyCommand(app),
		acl.Command(app), acl.LoginCommand(app), vars.Command(app), volume.Command(app), ops.AgentInfoCommand(app),
		env.Command(app), env.RunCommand(app), env.RunnerCommand(app), env.ExecutionCommand(app), fleet.Command(app, parts.Fleet),
	} {
		root.AddCommand(term.Remote(app, c))
	}
	root.AddCommand(shortcuts(app)...)
	addAbsent(app, root)
	return root
}

// meant names the flag that was perhaps meant by one that does not exist; "" if none is near.
func meant(c *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near := validation.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return "; perhaps: -" + near
	}
	return ""
}

// versionCommand is "drover version".
func versionCommand(app *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(app.Out, "Drover %s (Nomad API %s)\n", version.Version, version.Nomad)
			return err
		},
	}
}
