package server

import (
	"context"
	"crypto/subtle"
	"log/slog"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/telemetry"
)

// Admit implements link.Authenticator. A machine of the fleet shows the token of its intent, which is good for one
// node only; other nodes show the server's join token, or have shown a certificate. What makes a node a machine of the fleet is marked on it.
func (c *control) Admit(token string, node *drover.Node) error {
	for _, name := range []string{attrInstance, attrPool, attrTemplate} {
		delete(node.Attributes, name)
	}
	s := c.store.Snapshot()
	if who := s.FleetIdentity(); who != nil {
		if id, err := pool.IntentOf(who.Key, token); err == nil {
			return c.admitMachine(node, s.FleetInstance(id), s.FleetPool)
		}
	}
	switch {
	case c.joinToken == "" && c.certified:
		return nil
	case c.joinToken != "" && subtle.ConstantTimeCompare([]byte(c.joinToken), []byte(token)) == 1:
		return nil
	case token == "":
		return drover.Errorf(drover.Unauthorized, "a join token is needed, and this node has none: %s", giveToken)
	}
	return drover.Errorf(drover.Unauthorized, "wrong join token: %s", giveToken)
}

// giveToken is what a person does about a node that is refused.
const giveToken = "give it the server's (its server.join_token, else what it keeps in the file join-token of its data_dir) " +
	"as -join-token, DROVER_JOIN_TOKEN, client.join_token or client.join_token_file"

// doorkeeper tells the operator of the server of nodes that it did not admit: the operator of a node hears it there.
type doorkeeper struct {
	*control
	log     *slog.Logger
	clock   clock.Clock
	refused telemetry.Seldom
}

// Admit implements link.Authenticator.
func (d *doorkeeper) Admit(token string, node *drover.Node) error {
	err := d.control.Admit(token, node)
	if err != nil {
		d.refused.Warn(d.log, d.clock.Now(), "a node was not admitted", "node", node.ID, "name", node.Name, "error", err)
	}
	return err
}

func (c *control) admitMachine(node *drover.Node, i *drover.FleetInstance, poolOf func(string) *drover.FleetPool) error {
	switch {
	case i == nil || i.State == drover.InstanceGone:
		return drover.Errorf(drover.Unauthorized, "the token is of a machine that the fleet does not have any more")
	case i.NodeID != "" && i.NodeID != node.ID:
		return drover.Errorf(drover.Unauthorized, "the token of machine %s was used by node %s: it is good for one node", i.ID, i.NodeID)
	}
	if node.Attributes == nil {
		node.Attributes = map[string]string{}
	}
	node.Attributes[attrInstance], node.Attributes[attrPool], node.Attributes[attrTemplate] = i.ID, i.Pool, i.Template
	p := poolOf(i.Pool)
	if p == nil {
		return nil // an orphan: it may finish what runs on it
	}
	node.NodePool = p.Policy.NodePool
	for _, o := range p.Policy.Offerings() {
		if o.Key == i.Offering {
			node.Attributes[attrType], node.Attributes[attrZone], node.Attributes[attrMarket] = o.Type, o.Zone, o.Market
		}
	}
	return nil
}

// remoteNodes is the controller as nodes that dial see it. Nothing listens on them: who looks for a node's HTTP
// address, as Nomad's client does for logs and exec, gets this server's, which reaches the node through its tunnel.
type remoteNodes struct {
	drover.Controller
	control  *control
	fleet    *fleet
	httpAddr string
}

// Heartbeat implements drover.Controller.
func (r remoteNodes) Heartbeat(ctx context.Context, nodeID string) (drover.Registration, error) {
	reg, err := r.Controller.Heartbeat(ctx, nodeID)
	if err == nil {
		r.fleet.meters.heartbeat(nodeID, r.fleet.deps.Clock.Now())
	}
	return reg, err
}

// Register implements drover.Controller. The first node that registers with a machine's token is bound to it for good.
func (r remoteNodes) Register(ctx context.Context, n *drover.Node) (drover.Registration, error) {
	n.HTTPAddr = r.httpAddr
	if id := n.Attributes[attrInstance]; id != "" {
		if err := r.control.bind(ctx, id, n.ID); err != nil {
			return drover.Registration{}, err
		}
	}
	return r.Controller.Register(ctx, n)
}
