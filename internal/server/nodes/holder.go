package nodes

import (
	"context"
	"net"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/peercall"
)

// Through returns the workloads of a node that this server does not reach itself, through a server that does. That server is
// looked for when the workloads are used.
func (f *Front) Through(nodeID string) exchange.Workloads {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.through[nodeID]; p != nil {
		return p
	}
	if len(f.through) >= mostThrough { // who uses one keeps it
		clear(f.through)
	}
	p := link.Through(nodeID, func(ctx context.Context) (net.Conn, error) { return f.dialHolder(ctx, nodeID) })
	f.through[nodeID] = p
	return p
}

// dialHolder connects with a server that reaches the node. Errors: Unavailable.
func (f *Front) dialHolder(ctx context.Context, nodeID string) (net.Conn, error) {
	id := f.Holder(ctx, nodeID)
	for _, s := range f.deps.Servers.List() {
		if s.ID == id && id != f.deps.Servers.Self().ID {
			return f.deps.Servers.Dial(ctx, s.Address)
		}
	}
	return nil, drover.Errorf(drover.Unavailable, "node %s is connected to no server that answers", nodeID)
}

// procHolds asks a server whether it reaches a node.
const procHolds = "Nodes.Holds"

// mostThrough bounds how many nodes are remembered that others reach.
const mostThrough = 1000

// asking bounds how long the others have to say whether they reach a node.
const asking = 2 * time.Second

// Holder returns the id of a server that reaches the node, "" if there is none that says so. Each node has a tunnel to each
// server, so others are asked only where one is missing.
func (f *Front) Holder(ctx context.Context, nodeID string) string {
	if f.deps.Holds(nodeID) {
		return f.deps.Servers.Self().ID
	}
	if !f.deps.Servers.Clustered() {
		return ""
	}
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, asking)
	defer cancel()
	found, others := make(chan string), 0
	for _, s := range f.deps.Servers.List() {
		if s.ID == f.deps.Servers.Self().ID || !s.Alive {
			continue
		}
		others++
		go func() { // ends with the call, whose time is limited
			holds, err := peercall.Call[bool](ctx, f.deps.Servers.Client(), s.Address, procHolds, nodeID)
			id := ""
			if err == nil && holds {
				id = s.ID
			}
			select {
			case found <- id:
			case <-ctx.Done():
			}
		}()
	}
	for range others {
		select {
		case id := <-found:
			if id != "" {
				return id
			}
		case <-ctx.Done():
			return ""
		}
	}
	return ""
}

// Owner says which server answers for a node or an allocation: this one if it reaches the node, else another one that does. "" is the
// leader.
func (f *Front) Owner(ctx context.Context, place httpapi.Place, key string) string {
	f.newest(ctx)
	if place == httpapi.AtAllocation {
		alloc := f.deps.Store.Snapshot().Allocation(key)
		if alloc == nil {
			return ""
		}
		key = alloc.NodeID
	}
	return f.Holder(ctx, key)
}

// ownerWait bounds how long a request waits for what the leader knows, before its server is chosen.
const ownerWait = 2 * time.Second

// newest waits until this server knows of an allocation what the leader knows: whoever asks about it may have seen that.
// Without a leader, what is known here has to do.
func (f *Front) newest(ctx context.Context) {
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, ownerWait)
	defer cancel()
	if err := f.Current(ctx); err != nil {
		f.deps.Logger.Debug("answering from state that may be old", "error", err)
	}
}
