package alloc

import (
	"context"
	"io"
	"math"
	"net/url"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// logsFlags are the flags of "drover alloc logs". Neither or both of stdout and stderr mean both.
type logsFlags struct {
	chosen
	tail
	stdout, stderr bool
	since, search  string
}

// logsCommand is "drover alloc logs". Rotated files of a log are printed as one text.
func logsCommand(app *term.App) *cobra.Command {
	f := &logsFlags{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return logs(ctx, app, f, args)
	}
	c := term.Command(app, "logs ALLOC [TASK]", "Print what a task wrote", 0, 2, run)
	term.Describe(c, "Prints stdout and then stderr of a task, each to its own stream; with -f both as they come.",
		"drover alloc logs 3f2a\ndrover alloc logs -f -stderr 3f2a\ndrover alloc logs -tail -n 20 -job web\n"+
			"drover alloc logs -f -since 10m 3f2a\ndrover alloc logs -search 'connection refused' 3f2a")
	fl := c.Flags()
	f.chosen.bind(fl)
	f.tail.bind(fl, "go on as more is written")
	fl.BoolVar(&f.stdout, "stdout", false, "only stdout")
	fl.BoolVar(&f.stderr, "stderr", false, "only stderr")
	fl.StringVar(&f.since, "since", "", "only what was written since then: how long ago, as 10m, or a time, as 2026-03-01T12:30:00Z")
	fl.StringVar(&f.search, "search", "",
		"only lines that have this text, whatever the case of its letters; the node searches, over all of the log")
	return c
}

// logs prints the logs of one task. Of both, stderr goes to our stderr; alone it goes to stdout, so that it can be
// piped. Errors: Invalid, NotFound; the API's.
func logs(ctx context.Context, app *term.App, f *logsFlags, args []string) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	// The task may be the last word, as Nomad has it; with -job the allocation's word is missing.
	if f.job == "" && len(args) == 2 || f.job != "" && len(args) == 1 {
		f.task, args = args[len(args)-1], args[:len(args)-1]
	}
	v, task, _, err := f.find(ctx, c, args)
	if err != nil {
		return err
	}
	if f.since != "" && f.wantsEnd() {
		return drover.Errorf(drover.Invalid, "-since says where to begin: leave out -tail, -n and -c")
	}
	if f.search != "" && f.wantsEnd() {
		return drover.Errorf(drover.Invalid, "-search looks at all of the log: leave out -tail, -n and -c, or give -since")
	}
	both := f.stdout == f.stderr
	g, ctx := errgroup.WithContext(ctx)
	if !f.follow {
		// Without -f both end, and mixing them would only hide their order.
		g.SetLimit(1) // one after the other
	}
	if both || f.stdout {
		g.Go(func() error { return f.stream(ctx, c, app.Out, v.ID, task, "stdout") }) // ends with the log or ctx
	}
	if both || f.stderr {
		w := app.Err
		if !both {
			w = app.Out
		}
		g.Go(func() error { return f.stream(ctx, c, w, v.ID, task, "stderr") }) // ends with the log or ctx
	}
	return g.Wait()
}

// stream prints one log of a task; kind is "stdout" or "stderr". A log has no size that could be asked for before, so
// the number of bytes from the end is not bounded.
func (f *logsFlags) stream(ctx context.Context, c *api.Client, w io.Writer, id, task, kind string) error {
	q := url.Values{"task": {task}, "type": {kind}}
	if f.since != "" {
		q.Set("since", f.since)
	}
	if f.search != "" {
		q.Set("search", f.search)
	}
	return f.print(ctx, c, w, "/v1/client/fs/logs/"+id, q, math.MaxInt64)
}
