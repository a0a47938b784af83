package nodes

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/peercall"
)

// procHolds asks a server whether it reaches a node.
const procHolds = "Nodes.Holds"

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
