package cli

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
)

type eventFlags struct {
	output
	topics []string
	index  uint64
}

func (a *App) eventCommand() *cobra.Command {
	f := &eventFlags{}
	c := leaf("stream", "Print what happens, as it happens", 0, 0, func(ctx context.Context, _ []string) error {
		return a.eventStream(ctx, f)
	})
	with(c, "Prints one line an event; with -json one JSON object a raft entry, as the API sends it. Ends with Ctrl-C.",
		"drover event stream\ndrover event stream -topic Job -topic Allocation:web\ndrover event stream -index 120 -json")
	f.bind(c.Flags())
	c.Flags().StringArrayVar(&f.topics, "topic", nil, "a topic, or topic:key; can be repeated (Job, Allocation, Evaluation, Deployment, Node, Runner, …)")
	c.Flags().Uint64Var(&f.index, "index", 0, "begin at this index; default: with what comes")
	return group("event", "Watch what happens", c)
}

// maxEvent is how long a line of the stream may be.
const maxEvent = 64 << 20

func (a *App) eventStream(ctx context.Context, f *eventFlags) error {
	c, err := a.asks()
	if err != nil {
		return err
	}
	q := url.Values{"topic": f.topics}
	if f.index == 0 {
		if f.index, err = c.now(ctx); err != nil {
			return err
		}
	}
	q.Set("index", strconv.FormatUint(f.index, 10))
	res, err := c.open(ctx, http.MethodGet, "/v1/event/stream", q, nil)
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
		if err := a.event(f, lines.Bytes()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return drover.Errorf(drover.Unavailable, "the stream ended: %w", lines.Err())
}

// now is an index behind all that happened.
func (c *api) now(ctx context.Context) (uint64, error) {
	var r struct{ Index uint64 }
	err := c.put(ctx, "/v1/search", c.anywhere(), map[string]string{"Prefix": "\x00", "Context": "all"}, &r)
	return r.Index + 1, err
}

func (a *App) event(f *eventFlags, text []byte) error {
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
	case f.json:
		_, err := fmt.Fprintf(a.Out, "%s\n", text)
		return err
	}
	for _, e := range l.Events.Events {
		if done, err := f.data(a.Out, e); done {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(a.Out, "%d  %-11s %-28s %s\n", e.Index, e.Topic, e.Type, f.id(line(e.Key))); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) monitorCommand() *cobra.Command {
	var level, node, server string
	var asJSON bool
	c := leaf("monitor", "Print the agent's log, as it is written", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if node != "" {
			n, err := c.node(ctx, node)
			if err != nil {
				return err
			}
			node = n.ID
		}
		fmt.Fprintf(a.Err, "==> What the agent logs from now on, level %s and up (Ctrl-C ends it)\n", level)
		if asJSON {
			return a.monitorJSON(ctx, c, query("log_level", level, "node_id", node, "server_id", server, "log_json", "true"))
		}
		return c.copyTo(ctx, a.Out, "/v1/agent/monitor", query("log_level", level, "node_id", node, "server_id", server, "plain", "true"))
	})
	c.Flags().StringVar(&level, "log-level", "info", "trace, debug, info, warn or error")
	c.Flags().StringVar(&node, "node-id", "", "of this node")
	c.Flags().StringVar(&server, "server-id", "", "of this server")
	c.Flags().BoolVar(&asJSON, "json", false, "JSON lines")
	return c
}

// monitorJSON unpacks the frames that JSON logs come in.
func (a *App) monitorJSON(ctx context.Context, c *api, q url.Values) error {
	res, err := c.open(ctx, http.MethodGet, "/v1/agent/monitor", q, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for d := json.NewDecoder(res.Body); ; {
		var f struct{ Data []byte }
		if err := d.Decode(&f); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return drover.Errorf(drover.Unavailable, "the log ended: %w", err)
		}
		if _, err := a.Out.Write(f.Data); err != nil {
			return err
		}
	}
}
