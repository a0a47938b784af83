package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// eventFlags are the flags of "drover event stream". index is the first one that is wanted; 0: only what comes.
type eventFlags struct {
	term.Output
	topics []string
	index  uint64
}

// EventCommand is "drover event".
func EventCommand(app *term.App) *cobra.Command {
	f := &eventFlags{}
	c := term.Command(app, "stream", "Print what happens, as it happens", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return eventStream(ctx, app, f)
	})
	term.Describe(c, "Prints one line an event; with -json one JSON object a raft entry, as the API sends it. Ends with Ctrl-C.",
		"drover event stream\ndrover event stream -topic Job -topic Allocation:web\ndrover event stream -index 120 -json")
	f.Bind(c.Flags())
	c.Flags().StringArrayVar(&f.topics, "topic", nil, "a topic, or topic:key; can be repeated (Job, Allocation, Evaluation, Deployment, "+
		"Node, Runner, …)")
	c.Flags().Uint64Var(&f.index, "index", 0, "begin at this index; default: with what comes")
	return term.Group("event", "Watch what happens", c)
}

// maxEvent is how many bytes a line of the stream may have. One raft entry is one line, and it may place thousands of
// allocations, each of which carries its job.
const maxEvent = 64 << 20

// eventStream prints events until ctx ends, which is no error. Errors: the API's; Gone if the server no longer has
// the index, or we read too slowly; Unavailable when the connection breaks.
func eventStream(ctx context.Context, app *term.App, f *eventFlags) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	q := url.Values{"topic": f.topics}
	if f.index == 0 {
		if f.index, err = now(ctx, c); err != nil {
			return err
		}
	}
	q.Set("index", strconv.FormatUint(f.index, 10))
	res, err := c.Open(ctx, http.MethodGet, "/v1/event/stream", q, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		if ctx.Err() != nil {
			return nil // the line may be cut
		}
		if err := printEvents(app, f, lines.Bytes()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return drover.Errorf(drover.Unavailable, "the stream ended: %w", lines.Err())
}

// now returns the index after the last change of anything that a search covers. A search for a byte that begins no id
// finds nothing and costs little, yet its answer has the index.
func now(ctx context.Context, c *api.Client) (uint64, error) {
	var r struct{ Index uint64 }
	err := c.Put(ctx, "/v1/search", c.Anywhere(), map[string]string{"Prefix": "\x00", "Context": "all"}, &r)
	return r.Index + 1, err
}

// printEvents prints one line of the stream, which holds all events of one index. With a template that is applied to
// each event. Errors: Gone for an error that the server wrote into the stream; those of reading and writing.
func printEvents(app *term.App, f *eventFlags, text []byte) error {
	var l struct {
		drover.Events
		Error string
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return drover.Errorf(drover.Unavailable, "reading an event: %w", err)
	}
	switch {
	case l.Error != "":
		return drover.Errorf(drover.Gone, "%s", l.Error)
	case len(l.Events.Events) == 0:
		return nil // a heartbeat
	case f.JSON:
		_, err := fmt.Fprintf(app.Out, "%s\n", text)
		return err
	}
	for _, e := range l.Events.Events {
		if done, err := f.Data(app.Out, e); done {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(app.Out, "%d  %-11s %-28s %s\n", e.Index, e.Topic, e.Type, f.ID(term.OneLine(e.Key))); err != nil {
			return err
		}
	}
	return nil
}
