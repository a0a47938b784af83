package ops

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/term"
)

// auditListFlags are those of "drover operator audit list".
type auditListFlags struct {
	term.Output

	query                 cluster.AuditQuery
	allowed, since, until string
}

// auditListCommand is "drover operator audit list".
func auditListCommand(app *term.App) *cobra.Command {
	f := &auditListFlags{}
	c := term.Command(app, "list", "List what the servers recorded of requests, the newest first", 0, 0,
		func(ctx context.Context, app *term.App, _ []string) error { return auditList(ctx, app, f) })
	term.Describe(c, `Asks each server of the region for the record that it keeps in a file (the audit block of its configuration), and lists
who did what, when it was answered or refused. A server that does not answer, or records nothing, is named on stderr. Needs a management
token. -json has all that is recorded, with the next token.`,
		`drover operator audit list -allowed=false -since 2h
drover operator audit list -accessor 88a4d444 -operation PUT
drover operator audit list -object web -json`)
	f.Bind(c.Flags())
	flags := c.Flags()
	flags.StringVar(&f.query.Accessor, "accessor", "", "only of the token with this accessor id, or its beginning, or with this name")
	flags.StringVar(&f.query.Operation, "operation", "", "only of this method, as PUT")
	flags.StringVar(&f.query.Object, "object", "", "only those with this in their path or in what it names")
	flags.StringVar(&f.query.Class, "class", "", "only of this class: read, secret or change")
	flags.StringVar(&f.query.Stage, "stage", "", "OperationReceived or OperationComplete; default OperationComplete, each request once")
	flags.StringVar(&f.allowed, "allowed", "", "true: only what was let in; false: only what was refused")
	flags.StringVar(&f.since, "since", "", "from this time on, as 2026-01-02T15:04:05Z, or for how long, as 2h")
	flags.StringVar(&f.until, "until", "", "before this time, likewise")
	flags.IntVar(&f.query.PerPage, "per-page", cluster.DefaultAuditPage, "records at most; from 1 to 1000")
	flags.StringVar(&f.query.NextToken, "page-token", "", "of the page that is wanted, as the page before says")
	return c
}

func auditList(ctx context.Context, app *term.App, f *auditListFlags) error {
	q := f.query
	if f.allowed != "" {
		allowed, err := strconv.ParseBool(f.allowed)
		if err != nil {
			return drover.Errorf(drover.Invalid, "-allowed: want true or false, got %q", f.allowed)
		}
		q.Allowed = &allowed
	}
	var err error
	if q.Since, err = auditTime(app, "-since", f.since); err != nil {
		return err
	}
	if q.Until, err = auditTime(app, "-until", f.until); err != nil {
		return err
	}
	api, err := app.Native()
	if err != nil {
		return err
	}
	found, err := api.Audit(ctx, q)
	if err != nil {
		return err
	}
	if done, err := f.Data(app.Out, found); done || err != nil {
		return err
	}
	for _, s := range found.Servers {
		if s.Problem != "" {
			_, _ = fmt.Fprintf(app.Err, "%s: %s\n", s.Name, term.OneLine(s.Problem)) // the terminal may be gone
		}
	}
	return printAudit(app, &f.Output, &found)
}

func printAudit(app *term.App, o *term.Output, found *cluster.AuditRecords) error {
	rows := make([][]string, 0, len(found.Records))
	for _, r := range found.Records {
		who, status := o.ID(r.AccessorID), "-"
		if r.TokenName != "" {
			who = r.TokenName
		}
		if r.Status > 0 {
			status = strconv.Itoa(r.Status)
		}
		if !r.Allowed {
			status += " refused"
		}
		rows = append(rows, []string{
			r.Time.UTC().Format(time.RFC3339), r.Server, orNone(who), r.Operation, term.OneLine(r.Path), orNone(r.Object), status, orNone(r.Remote),
		})
	}
	err := term.Table(app.Out, "Nothing is recorded that matches.", "Time (UTC)|Server|Who|Operation|Path|Object|Status|From", rows)
	if err == nil && found.NextToken != "" {
		if !found.Until.IsZero() {
			_, err = fmt.Fprintf(app.Out, "\nNothing before %s was looked at yet.", found.Until.UTC().Format(time.RFC3339))
		}
		if err == nil {
			_, err = fmt.Fprintf(app.Out, "\nOlder ones: -page-token=%s\n", found.NextToken)
		}
	}
	return err
}

// orNone is a text of callers in one line, or a dash.
func orNone(text string) string {
	if text = term.OneLine(text); text != "" {
		return text
	}
	return "-"
}

// auditTime reads a time, or how long ago it was; "" is none. Errors: Invalid, with the flag.
func auditTime(app *term.App, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, drover.Errorf(drover.Invalid, "%s: want a time as 2026-01-02T15:04:05Z, or how long ago as 2h, got %q", flag, text)
	}
	return app.Clock.Now().Add(-ago), nil
}
