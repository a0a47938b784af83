package nodes

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/server/servers"
)

// Deciding is the controller of this server while it leads, with what the fleet has to do with nodes.
type Deciding struct {
	exchange.Controller
	Gate  *gate.Gate
	Heard func(nodeID string)
}

// Heartbeat implements exchange.Controller.
func (d Deciding) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	reg, err := d.Controller.Heartbeat(ctx, nodeID)
	if err == nil {
		d.Heard(nodeID)
	}
	return reg, err
}

// Register implements exchange.Controller. The first node that registers with a machine's token is bound to it for good.
func (d Deciding) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	if err := d.Gate.Bind(ctx, n); err != nil {
		return exchange.Registration{}, err
	}
	reg, err := d.Controller.Register(ctx, n)
	if err == nil {
		d.Heard(n.ID)
	}
	return reg, err
}

// Remote is the controller as nodes that dial see it. Nothing listens on them: who looks for a node's HTTP
// address, as Nomad's client does for logs and exec, gets this server's, which reaches the node through its tunnel.
type Remote struct {
	*Front
	Servers  *servers.Servers
	HTTPAddr string
}

// Heartbeat implements exchange.Controller.
func (r Remote) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	reg, err := r.Front.Heartbeat(ctx, nodeID)
	reg.Servers = r.Servers.ForNodes()
	return reg, err
}

// Register implements exchange.Controller.
func (r Remote) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	n.HTTPAddr = r.HTTPAddr
	reg, err := r.Front.Register(ctx, n)
	reg.Servers = r.Servers.ForNodes()
	return reg, err
}
