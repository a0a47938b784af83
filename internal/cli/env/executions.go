package env

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

// executionListCommand is "drover execution list".
func executionListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	q := execution.ListQuery{}
	var search, since, until string
	run := func(ctx context.Context, c *client.Client, _ []string) (err error) {
		q.Words = strings.Fields(search)
		if q.Since, err = timeOf(app, "-since", since); err != nil {
			return err
		}
		if q.Until, err = timeOf(app, "-until", until); err != nil {
			return err
		}
		page, err := c.ListExecutions(ctx, q)
		if err != nil {
			return err
		}
		if err := term.Show(app, o, page.Items, executionListing()); err != nil {
			return err
		}
		if page.Next != "" {
			fmt.Fprintf(app.Err, "There are %d. The next page: -page-token %s\n", page.Total, page.Next)
		}
		if len(page.Silent) > 0 {
			fmt.Fprintf(app.Err, "Not in the list is what servers have that did not answer: %s\n", strings.Join(page.Silent, ", "))
		}
		return nil
	}
	c := term.NativeCommand(app, "list", "List what runs, and what ended in the last 15 minutes", 0, 0, run)
	term.Describe(c, `Lists the executions of all runners of the namespace (-namespace '*' is all), those that were started last first.`,
		`drover execution list -status running
drover execution list -env python -status oom -status timeout
drover execution list -exit nonzero -since 5m -sort -memory`)
	f := c.Flags()
	f.StringVar(&q.Environment, "env", "", "only of this environment")
	f.StringVar(&q.Runner, "runner", "", "only of this runner, which may have ended; its whole id")
	f.StringArrayVar(&q.Statuses, "status", nil, "running, ended, or why it ended, as in oom; can be repeated")
	f.StringVar(&q.Exit, "exit", "", "only those that ended with this code, or nonzero")
	f.StringVar(&since, "since", "", "those that still ran then: a time (RFC 3339), or how long ago, as in 5m")
	f.StringVar(&until, "until", "", "those that had been started by then: a time (RFC 3339), or how long ago, as in 5m")
	f.StringVar(&search, "search", "", "words, each of which must be in the id, the command, the runner or the environment")
	f.StringVar(&q.Sort, "sort", "", "cpu, ended, environment, memory, runner, started, status or wall, with - before it the other way round")
	f.IntVar(&q.PerPage, "per-page", 0, "so many a page, at most 1000; 0: 100")
	f.StringVar(&q.After, "page-token", "", "go on after a page")
	o.Bind(f)
	return c
}

func executionListing() term.Listing[execution.Listed] {
	return term.Listing[execution.Listed]{
		None: "There are no executions.", Heading: "ID|Status|Started|Took|Memory|Environment|Runner|Command",
		Row: func(x execution.Listed) []string {
			status, took, memory, began := execution.StatusRunning, "", "", ""
			if r := x.Receipt; r != nil {
				status, took, memory = string(r.Cause), r.Wall.Round(time.Millisecond).String(), term.Bytes(float64(r.PeakMemory))
				if r.Cause == execution.CauseExited {
					status = fmt.Sprintf("exit %d", r.ExitCode)
				}
			}
			if !x.StartedAt.IsZero() {
				began = term.Ago(x.StartedAt.UnixNano())
			}
			return []string{
				x.ID, status, began, took, memory, execution.Key(x.Namespace, x.Environment), x.RunnerID,
				term.OneLine(strings.Join(x.Spec.Argv, " ")),
			}
		},
	}
}

// timeOf reads a time, or how long ago it was; the zero time for "". Errors: Invalid.
func timeOf(app *term.App, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return app.Clock.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, drover.Errorf(drover.Invalid, "%s: want a time as in 2026-01-31T10:00:00Z, or how long ago as in 5m, got %q", flag, text)
	}
	return at, nil
}
