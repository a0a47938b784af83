package ops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/term"
)

// ServerCommand is "drover server".
func ServerCommand(app *term.App) *cobra.Command {
	return term.Group("server", "Look at the servers, and change who is one", membersCommand(app), joinCommand(app), forceLeaveCommand(app))
}

// joinCommand makes servers known to each other.
func joinCommand(app *term.App) *cobra.Command {
	c := term.NomadCommand(app, "join ADDRESS…", "Join other servers, by addresses of their gossip", 1, -1,
		func(ctx context.Context, c *api.Client, addresses []string) error {
			var r struct {
				NumJoined int    `json:"num_joined"`
				Error     string `json:"error"`
			}
			if err := c.Put(ctx, "/v1/agent/join", url.Values{"address": addresses}, nil, &r); err != nil {
				return err
			}
			if r.Error != "" {
				return drover.Errorf(drover.Unavailable, "%s", r.Error)
			}
			fmt.Fprintf(app.Out, "Joined %d servers successfully\n", r.NumJoined)
			return nil
		})
	c.Example = "  drover server join 10.0.0.2:4648"
	return c
}

// forceLeaveCommand takes a server out that does not come back.
func forceLeaveCommand(app *term.App) *cobra.Command {
	prune := false
	c := term.NomadCommand(app, "force-leave NAME", "Take a failed server out", 1, 1,
		func(ctx context.Context, c *api.Client, args []string) error {
			query := url.Values{"node": args}
			if prune {
				query.Set("prune", "1")
			}
			return c.Put(ctx, "/v1/agent/force-leave", query, nil, nil)
		})
	c.Flags().BoolVar(&prune, "prune", false, "forget it at once, instead of after a day")
	c.Example = "  drover server force-leave -prune s2.global"
	return c
}

// listedMember is what is shown of a server.
type listedMember struct {
	Name, Addr, Status string
	Port               uint16
	Tags               map[string]string
}

// membersCommand lists the servers. The leader is asked for separately; without one, as
// during an election, no member is marked.
func membersCommand(app *term.App) *cobra.Command {
	o, detailed := &term.Output{}, false
	c := term.NomadCommand(app, "members", "List the servers", 0, 0, func(ctx context.Context, c *api.Client, _ []string) error {
		var r struct {
			ServerRegion, ServerDC string
			Members                []listedMember
		}
		if _, err := c.Get(ctx, "/v1/agent/members", nil, &r); err != nil {
			return err
		}
		var leader string
		if _, err := c.Get(ctx, "/v1/status/leader", nil, &leader); err != nil {
			leader = "" // there may be none just now; the members are there nevertheless
		}
		if done, err := o.Data(app.Out, r.Members); done {
			return err
		}
		slices.SortFunc(r.Members, func(a, b listedMember) int { return cmp.Compare(a.Name, b.Name) })
		var rows [][]string
		for _, m := range r.Members {
			at := fmt.Sprintf("%s:%d", m.Addr, m.Port)
			// The leader is named by its rpc port, and a member by its gossip. A single server leads, whatever its addresses are.
			rpc := net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"])
			if detailed {
				rows = append(rows, []string{m.Name, m.Addr, fmt.Sprint(m.Port), tags(m.Tags)})
				continue
			}
			rows = append(rows, []string{
				m.Name, at, m.Status, term.YesNo(at == leader || rpc == leader || len(r.Members) == 1 && leader != ""), m.Tags["build"],
				m.Tags["dc"], m.Tags["region"],
			})
		}
		if detailed {
			return term.Table(app.Out, "There are none.", "Name|Address|Port|Tags", rows)
		}
		return term.Table(app.Out, "There are none.", "Name|Address|Status|Leader|Build|Datacenter|Region", rows)
	})
	o.Bind(c.Flags())
	c.Flags().BoolVar(&detailed, "detailed", false, "print all that the servers announce")
	return c
}

// tags prints what a server announces, in order.
func tags(of map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		out = append(out, key+"="+of[key])
	}
	return strings.Join(out, ",")
}
