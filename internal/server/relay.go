package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/relay"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/server/servers"
)

// openRelay makes the relay of a server.
func (a *Agent) openRelay() *relay.Relay {
	c := a.control
	return relay.New(relay.Config{Hold: config.Duration(a.cfg.Server.RPCHold, 0), Authority: a.cfg.Authority()}, relay.Deps{
		Servers: &servers.Known{Servers: c.servers}, Owner: a.owner, Ready: c.log.Ready, Linearize: c.servers.Linearize,
		Abroad: func(region string) { a.samples.Count("nomad.nomad.rpc.cross_region."+region, 1) }, Node: a.info().LocalNode(),
		Clock: a.deps.Clock, Log: a.deps.Log.With("part", "relay"),
	})
}

// openNodeRelay makes the relay of an agent without a server, which sends requests to a server.
func (a *Agent) openNodeRelay() *relay.Relay {
	return relay.NewNode(relay.Config{}, a.node.agent.NodeID(), a.node.remote.Relay, a.deps.Clock, a.deps.Log.With("part", "relay"))
}

// nodeKey is where a request's context has the id of the node that sent it on.
type nodeKey struct{}

// serveRelays serves what nodes send on until the returned function is called.
func (a *Agent) serveRelays(ctx context.Context, relays *link.Relays) (end func(), err error) {
	faces, err := a.handler()
	if err != nil {
		return nil, err
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			node, _ := r.Context().Value(nodeKey{}).(string)
			relay.FromNode(faces, node, func(r *http.Request) error { return a.cfg.RefuseRelayed(r.RemoteAddr) }).ServeHTTP(w, r)
		}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, nodeKey{}, link.RelayingNode(c))
		},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(relays) }) // ends with end
	return func() {
		_ = srv.Close()
		served.Wait()
	}, nil
}

// owner says which server answers for a node, allocation, runner or execution; "" is the leader.
func (a *Agent) owner(ctx context.Context, place httpapi.Place, key string) (string, error) {
	if place == httpapi.AtAllocation || place == httpapi.AtNode {
		return a.control.front.Owner(ctx, place, key), nil
	}
	return a.exec.Owner(ctx, place, key)
}
