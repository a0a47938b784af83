package ops

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// raftCommand is "drover operator raft".
func raftCommand(app *term.App) *cobra.Command {
	return term.Group("raft", "Look at the servers of the log, and change who is one", raftPeersCommand(app), removePeerCommand(app),
		transferCommand(app), raftInfoCommand(app))
}

// peer is the server that a command names by flags.
type peer struct{ id, address string }

func (p *peer) bind(c *cobra.Command) {
	c.Flags().StringVar(&p.id, "peer-id", "", "the server's id, as list-peers prints it")
	c.Flags().StringVar(&p.address, "peer-address", "", "the server's address, host:port")
}

// query names the server to the API. Errors: Invalid unless exactly one flag was given.
func (p *peer) query() (url.Values, error) {
	switch {
	case p.id == "" == (p.address == ""):
		return nil, drover.Errorf(drover.Invalid, "give either -peer-id or -peer-address")
	case p.id != "":
		return api.Query("id", p.id), nil
	}
	return api.Query("address", p.address), nil
}

// removePeerCommand is "drover operator raft remove-peer".
func removePeerCommand(app *term.App) *cobra.Command {
	var p peer
	c := term.NomadCommand(app, "remove-peer (-peer-id ID | -peer-address ADDRESS)", "Take a server out of the log", 0, 0,
		func(ctx context.Context, c *api.Client, _ []string) error {
			query, err := p.query()
			if err != nil {
				return err
			}
			if err := c.Delete(ctx, "/v1/operator/raft/peer", query, nil); err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "Removed the server %q.\n", p.id+p.address)
			return nil
		})
	term.Describe(c, `Takes a server out of the log that is gone and that nobody takes out: autopilot removes a server that failed, and
'drover server force-leave' one that gossip still knows. A server that runs and gossips comes back by itself.`,
		"drover operator raft remove-peer -peer-id 2bc6fb10-6ca1-4ce6-9b0d-0d5d5f0a5a37")
	p.bind(c)
	return c
}

// transferCommand is "drover operator raft transfer-leadership".
func transferCommand(app *term.App) *cobra.Command {
	var p peer
	c := term.NomadCommand(app, "transfer-leadership (-peer-id ID | -peer-address ADDRESS)", "Make another server the leader", 0, 0,
		func(ctx context.Context, c *api.Client, _ []string) error {
			query, err := p.query()
			if err != nil {
				return err
			}
			if err := c.Put(ctx, "/v1/operator/raft/transfer-leadership", query, nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(app.Out, "The server %q leads.\n", p.id+p.address)
			return nil
		})
	term.Describe(c, "Hands leadership over, as before the leader's machine is stopped.",
		"drover operator raft transfer-leadership -peer-address 10.0.0.2:4647")
	p.bind(c)
	return c
}

// raftInfoCommand is "drover operator raft info": what the agent that is asked says of its own log.
func raftInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		var r struct {
			Stats map[string]map[string]string `json:"stats"`
		}
		if _, err := c.Get(ctx, "/v1/agent/self", nil, &r); err != nil {
			return err
		}
		raft := r.Stats["raft"]
		if len(raft) == 0 {
			return drover.Errorf(drover.Invalid, "the agent is no server")
		}
		if done, err := o.Data(app.Out, raft); done {
			return err
		}
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(raft)) {
			pairs = append(pairs, key, raft[key])
		}
		return term.Facts(app.Out, pairs...)
	}
	c := term.NomadCommand(app, "info", "Show where the asked server's log is", 0, 0, run)
	o.Bind(c.Flags())
	return c
}
