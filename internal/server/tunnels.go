package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/peer"
	"github.com/drover-project/drover/internal/server/enrol"
)

// dial makes the link to servers in other processes. Errors: those of the node's identity and of the certificates.
func (a *Agent) dial(cfg agent.Config, known []string, kept string) (*link.Dialed, error) {
	identity, err := agent.ReadIdentity(cfg, a.deps.IDs)
	if err != nil {
		return nil, err
	}
	secure := a.live.RPC
	if a.enrolls != nil {
		secure = a.enrolls.Secure
	}
	return link.Dial(link.DialConfig{
		Servers: known, Kept: kept, TLS: secure.Source(), Names: peer.ServerNames(a.cfg.Region),
		Identity: link.Identity{NodeID: identity.ID, Secret: identity.Secret},
		Tokens: func(ctx context.Context, server string) (exchange.Tokens, error) {
			return enrol.Tokens(ctx, a.cfg.Client, a.stateDir(), server)
		},
		Faces: http.HandlerFunc(a.answerServers), Known: a.control != nil, Clock: a.deps.Clock, Log: a.deps.Log,
	}), nil
}

// answerServers answers what a server asks this agent of itself, through the tunnel of its node.
func (a *Agent) answerServers(w http.ResponseWriter, r *http.Request) {
	faces, err := a.handler()
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/v1/agent/") && r.URL.Path != "/v1/metrics":
		http.Error(w, "only the agent itself is asked through its node's tunnel", http.StatusNotFound)
	default:
		relay.FromPeer(faces).ServeHTTP(w, r)
	}
}

// tunnels lets the other servers reach the node of this process, which asks its own server what to do.
func (a *Agent) tunnels(ctx context.Context) error {
	if !a.awaitOwnNode(ctx, func(*drover.Node) bool { return true }) {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- a.node.remote.Run(ctx, a.node.agent) }() // ends with ctx
	peers := a.control.servers
	for ctx.Err() == nil {
		changed := peers.Changed()
		a.node.remote.Learn(slices.DeleteFunc(slices.Clone(peers.ForNodes()), func(s exchange.Server) bool { return s.ID == peers.Self().ID }))
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return <-ended
}
