package doctor

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// patience is how long a server may take to answer.
const patience = 10 * time.Second

// examineCluster asks the agent for the servers of its region, and each of them how it is. It prints what that means, and
// returns the verdict.
func examineCluster(ctx context.Context, app *term.App, o *term.Output) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	seen, err := servers(ctx, c)
	if err != nil {
		return err
	}
	var asked sync.WaitGroup
	for i := range seen {
		if seen[i].Problem == "" && seen[i].Status != "left" {
			asked.Go(func() { askServer(ctx, app, c, &seen[i].Seen, seen[i].id) }) // ends within patience
		}
	}
	asked.Wait()
	list := make([]cluster.Seen, len(seen))
	for i, s := range seen {
		list[i] = s.Seen
	}
	findings := cluster.Diagnose(list, app.Clock.Now())
	done, err := o.Data(app.Out, findings)
	if !done {
		var rows [][]string
		for _, f := range findings {
			rows = append(rows, []string{f.Check, f.State, f.Server, f.Says})
		}
		err = term.Table(app.Out, "", "Check|State|Server|Says", rows)
	}
	if err != nil {
		return err
	}
	switch cluster.Worst(findings) {
	case cluster.Broken:
		return &term.ExitError{Code: term.ExitFailure, Err: errors.New("something of the cluster is broken")}
	case cluster.Weak:
		return &term.ExitError{Code: term.ExitWeak, Err: errors.New("the cluster works, but not through everything that may come")}
	}
	return nil
}

// listed is a server with the id by which it is asked.
type listed struct {
	cluster.Seen
	id string
}

// servers are those of the agent's region that gossip or the log knows.
func servers(ctx context.Context, c *api.Client) ([]listed, error) {
	var known struct {
		ServerRegion string
		Members      []struct {
			Name, Status string
			Tags         map[string]string
		}
	}
	if _, err := c.Get(ctx, "/v1/agent/members", nil, &known); err != nil {
		return nil, err
	}
	var raft struct {
		Servers []struct {
			ID, Node string
			Voter    bool
		}
	}
	if _, err := c.Get(ctx, "/v1/operator/raft/configuration", api.Query("stale", "true"), &raft); err != nil {
		return nil, err
	}
	votes, nodes := map[string]bool{}, map[string]string{}
	for _, s := range raft.Servers {
		votes[s.ID], nodes[s.ID] = s.Voter, s.Node
	}
	var out []listed
	for _, m := range known.Members {
		if m.Tags["region"] == known.ServerRegion {
			id := m.Tags["id"]
			out = append(out, listed{cluster.Seen{Name: m.Name, Status: m.Status, Voter: votes[id]}, id})
			delete(nodes, id)
		}
	}
	for _, s := range raft.Servers {
		if name, ok := nodes[s.ID]; ok {
			out = append(out, listed{cluster.Seen{Name: name, Voter: s.Voter, Problem: "gossip knows nothing of it"}, s.ID})
		}
	}
	return out, nil
}

// askServer has a server examine itself, through the agent.
func askServer(ctx context.Context, app *term.App, c *api.Client, s *cluster.Seen, id string) {
	ctx, cancel := app.Clock.WithTimeout(ctx, patience)
	defer cancel()
	var answer cluster.Checkup
	s.Sent = app.Clock.Now()
	_, err := c.Call(ctx, http.MethodGet, "/v1/agent/checkup", api.Query("server_id", id), nil, &answer)
	s.Received = app.Clock.Now()
	if err != nil {
		s.Problem = err.Error()
		return
	}
	s.Checkup = &answer
}
