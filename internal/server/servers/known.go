package servers

import (
	"context"
	"net"
	"sync"

	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/httpapi/relay"
)

// Known are the servers of all regions, as the relay finds them. They are remembered until something changes, since each
// request asks several times.
type Known struct {
	*Servers

	mu      sync.Mutex // guards what follows
	changed <-chan struct{}
	self    relay.Server
	list    []relay.Server
}

// known returns what is remembered, or makes it anew.
func (k *Known) known() (self relay.Server, list []relay.Server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed != nil {
		select {
		case <-k.changed:
		default:
			return k.self, k.list
		}
	}
	k.changed = k.Servers.Changed() // before the reading, so that no change falls between
	k.self, k.list = relay.Server(k.Servers.Self()), nil
	votes := map[string]bool{}
	for _, s := range k.Servers.List() {
		votes[s.ID] = s.Voter
	}
	for _, m := range k.Members() {
		k.list = append(k.list, relay.Server{
			ID: m.ID, Name: m.Name, Region: m.Region, Address: m.RPCAddr, HTTP: m.HTTPAddr,
			Alive: m.Status == members.Alive, Voter: votes[m.ID],
		})
	}
	return k.self, k.list
}

// Self implements relay.Servers.
func (k *Known) Self() relay.Server { self, _ := k.known(); return self }

// List implements relay.Servers.
func (k *Known) List() []relay.Server { _, list := k.known(); return list }

// ByID implements relay.Servers.
func (k *Known) ByID(id string) (relay.Server, bool) {
	_, list := k.known()
	for _, s := range list {
		if s.ID == id {
			return s, true
		}
	}
	return relay.Server{}, false
}

// Leader implements relay.Servers.
func (k *Known) Leader() (relay.Server, bool) {
	if k.Leads() {
		return k.Self(), true
	}
	id, address := k.Log().Leader()
	if id == "" || id == k.Self().ID { // it does not lead any more
		return relay.Server{}, false
	}
	if s, ok := k.ByID(id); ok {
		return s, true
	}
	return relay.Server{ID: id, Name: id, Region: k.Self().Region, Address: address, Alive: true, Voter: true}, true // gossip is late
}

// Dial implements relay.Servers.
func (k *Known) Dial(ctx context.Context, address string) (net.Conn, error) {
	return k.Servers.Dial(ctx, address)
}
