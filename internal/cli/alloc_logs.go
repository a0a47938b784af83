package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/drover-project/drover"
)

type allocLogsFlags struct {
	chosen
	follow, stdout, stderr, tail bool
	lines                        int
	bytes                        int64
}

func (a *App) allocLogsCommand() *cobra.Command {
	f := &allocLogsFlags{}
	c := leaf("logs ALLOC [TASK]", "Print what a task wrote", 0, 2, func(ctx context.Context, args []string) error {
		return a.allocLogs(ctx, f, args)
	})
	with(c, "Prints stdout and then stderr of a task, each to its own stream; with -f both as they come.",
		"drover alloc logs 3f2a\ndrover alloc logs -f -stderr 3f2a\ndrover alloc logs -tail -n 20 -job web")
	fl := c.Flags()
	f.bind(fl)
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on as more is written")
	fl.BoolVar(&f.stdout, "stdout", false, "only stdout")
	fl.BoolVar(&f.stderr, "stderr", false, "only stderr")
	fl.BoolVar(&f.tail, "tail", false, "only the end: 10 lines, or as many as -n or -c say")
	fl.IntVarP(&f.lines, "lines", "n", 0, "with -tail: how many lines")
	fl.Int64VarP(&f.bytes, "bytes", "c", 0, "with -tail: how many bytes")
	return c
}

func (a *App) allocLogs(ctx context.Context, f *allocLogsFlags, args []string) error {
	c, err := a.asks()
	if err != nil {
		return err
	}
	if f.job == "" && len(args) == 2 || f.job != "" && len(args) == 1 {
		f.task, args = args[len(args)-1], args[:len(args)-1]
	}
	v, task, _, err := f.find(ctx, c, args)
	if err != nil {
		return err
	}
	if f.lines > 0 || f.bytes > 0 {
		f.tail = true
	}
	both := f.stdout == f.stderr
	g, ctx := errgroup.WithContext(ctx)
	if !f.follow {
		g.SetLimit(1) // one after the other
	}
	if both || f.stdout {
		g.Go(func() error { return f.print(ctx, c, a.Out, v.ID, task, "stdout") }) // ends with the log or ctx
	}
	if both || f.stderr {
		w := a.Err
		if !both {
			w = a.Out
		}
		g.Go(func() error { return f.print(ctx, c, w, v.ID, task, "stderr") }) // ends with the log or ctx
	}
	return g.Wait()
}

// tailGuess is how many bytes are looked at for a line.
const tailGuess = 1 << 10

func (f *allocLogsFlags) print(ctx context.Context, c *api, w io.Writer, id, task, kind string) error {
	q := url.Values{"task": {task}, "type": {kind}, "plain": {"true"}, "follow": {strconv.FormatBool(f.follow)}}
	if !f.tail {
		return c.copyTo(ctx, w, "/v1/client/fs/logs/"+id, q)
	}
	q.Set("origin", "end")
	if f.bytes > 0 {
		q.Set("offset", strconv.FormatInt(f.bytes, 10))
		return c.copyTo(ctx, w, "/v1/client/fs/logs/"+id, q)
	}
	lines := f.lines
	if lines == 0 {
		lines = 10
	}
	return c.lastLines(ctx, w, "/v1/client/fs/logs/"+id, q, lines, f.follow)
}

// lastLines prints the last lines, looking back far enough to find them, and goes on from there if it shall follow.
func (c *api) lastLines(ctx context.Context, w io.Writer, path string, q url.Values, lines int, follow bool) error {
	q.Set("follow", "false")
	var text []byte
	for back := int64(lines) * tailGuess; ; back *= 8 {
		q.Set("offset", strconv.FormatInt(back, 10))
		var b bytes.Buffer
		if err := c.copyTo(ctx, &b, path, q); err != nil {
			return err
		}
		text = b.Bytes()
		if int64(len(text)) < back || bytes.Count(text, []byte("\n")) > lines {
			break
		}
	}
	text = lastOf(text, lines)
	if !follow {
		_, err := w.Write(text)
		return err
	}
	q.Set("follow", "true")
	q.Set("offset", strconv.Itoa(len(text)))
	return c.copyTo(ctx, w, path, q)
}

// lastOf cuts text to its last lines.
func lastOf(text []byte, lines int) []byte {
	end := len(text)
	if end > 0 && text[end-1] == '\n' {
		end--
	}
	for range lines {
		at := bytes.LastIndexByte(text[:end], '\n')
		if at < 0 {
			return text
		}
		end = at
	}
	return text[end+1:]
}

// copyTo writes an answer's body to w. That ctx ended is no error: somebody had enough of it.
func (c *api) copyTo(ctx context.Context, w io.Writer, path string, q url.Values) error {
	res, err := c.open(ctx, http.MethodGet, path, q, nil)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(w, res.Body)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return drover.Errorf(drover.Unavailable, "reading from the agent: %w", err)
	}
	return nil
}
