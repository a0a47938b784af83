package lessee

import (
	"context"
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/httpapi"
)

// Directory says which server answers for claims, runners and executions.
type Directory struct {
	Store   *store.Store
	Network Network
	Lessee  *Lessee
}

// Keeper is the server that an allocation's runner is leased to; "" if that server's incarnation has ended, or there is none.
func (d Directory) Keeper(allocID string) string {
	s := d.Store.Snapshot()
	if a := s.Allocation(allocID); a != nil && a.Lease != 0 {
		if l := s.Lessee(a.Lease); l != nil {
			return l.Server
		}
	}
	return ""
}

// Owner is the server that answers for claims of an environment, for a runner or for an execution; "" is the leader. Errors:
// Unavailable: a server is gone and another is taking over from it, so that it can be said in a few seconds.
func (d Directory) Owner(ctx context.Context, place httpapi.Place, key string) (string, error) {
	if key == "" {
		return "", nil
	}
	self := d.Network.Servers.Self().ID
	hop, relayed := httpapi.HopOf(ctx)
	relayed = relayed && hop.Way == httpapi.FromServer
	switch place {
	case httpapi.AtRunner:
		return d.keeper(runner.AllocOf(key))
	case httpapi.AtClaim:
		if relayed || d.Lessee.Warm(key) { // who was asked by another lets the claim wait, if the runner is gone meanwhile
			return self, nil
		}
		return d.holder(key, self), nil
	default:
	}
	if d.Lessee.Has(key) {
		return self, nil
	}
	if relayed {
		return self, d.expected(ctx, key)
	}
	return d.executionOwner(ctx, key, self)
}

// expected returns nil if this server has an execution for which another server sent a request here. That one was told so, or read it in
// the state. If the execution has gone elsewhere meanwhile, or this server's state is older, its client must not be told that there is
// none: whoever sent the request here asks all again. Errors: Unavailable.
func (d Directory) expected(ctx context.Context, id string) error {
	r := d.Store.Snapshot().Execution(id)
	if !d.Lessee.shares() || r != nil && !r.Execution.Running { // the leader has all, and the state has how it ended
		return nil
	}
	limit, cancel := d.Lessee.deps.Clock.WithTimeout(ctx, askFor)
	defer cancel()
	has, err := d.Lessee.AnswerHas(limit, id, 0)
	if err == nil && !has {
		err = drover.Errorf(drover.Unavailable, "execution %s is not at this server", id)
	}
	return err
}

// holder is the server with the most warm runners of an environment, as far as the state and gossip know; self if there are none.
func (d Directory) holder(environmentKey, self string) string {
	s, alive, best := d.Store.Snapshot(), map[uint64]string{}, ""
	for l := range s.Lessees() {
		if one, ok := d.Network.Servers.ByID(l.Server); ok && one.Alive {
			alive[l.Incarnation] = l.Server
		}
		if l.Server == self {
			best = self
		}
	}
	held := map[string]int{}
	job := environment.JobOf(environmentKey)
	for a := range s.ActiveAllocationsByJob(job.Namespace, job.ID) {
		server, ok := alive[a.Lease]
		if !ok || a.Claim != nil || a.Terminal() {
			continue
		}
		if held[server]++; held[server] > held[best] {
			best = server
		}
	}
	return best
}

// Keeps reports whether claimed runners are leased to the incarnation.
func (d Directory) Keeps(incarnation uint64) bool {
	s := d.Store.Snapshot()
	for job := range s.Jobs("*", environment.JobPrefix) {
		for a := range s.ActiveAllocationsByJob(job.Namespace, job.ID) {
			if a.Lease == incarnation && a.Claim != nil && !a.Terminal() {
				return true
			}
		}
	}
	return false
}

// keeper is Keeper for a request. Errors: Unavailable: no server has taken over yet from one that ended.
func (d Directory) keeper(allocID string) (string, error) {
	server := d.Keeper(allocID)
	if a := d.Store.Snapshot().Allocation(allocID); server == "" && a != nil && a.Lease != 0 && !a.Terminal() {
		return "", drover.Errorf(drover.Unavailable, "the server that kept the runner of allocation %s is gone", allocID)
	}
	return server, nil
}

// askFor bounds how long other servers are asked for an execution.
const askFor = time.Second

// lastKeeper is the server that has the output of what ended in an allocation, also if that has ended itself. Without one this server
// knows what the state does, and finds the output in the runner if that lives.
func (d Directory) lastKeeper(allocID, self string) string {
	if server, ok := d.Network.Servers.ByID(d.Keeper(allocID)); ok && server.Alive {
		return server.ID
	}
	return self
}

// executionOwner asks for the server that has an execution. Of one that ended the state knows whose it was. While a server does not
// answer nobody can say that there is no such execution: the server may have it, until its incarnation ends.
func (d Directory) executionOwner(ctx context.Context, id, self string) (string, error) {
	s := d.Store.Snapshot()
	if !d.Lessee.shares() { // the leader has all
		return "", nil
	}
	if r := s.Execution(id); r != nil {
		if r.Execution.Running {
			return d.keeper(r.Execution.AllocID)
		}
		return d.lastKeeper(r.Execution.AllocID, self), nil
	}
	all := incarnations(s)
	type answer struct {
		server string
		has    bool
		err    error
	}
	limit, cancel := d.Lessee.deps.Clock.WithTimeout(ctx, askFor)
	defer cancel()
	answers := make(chan answer, len(all))
	for _, server := range all {
		go func() { // ends with limit
			x := answer{server: server}
			if server == self {
				x.has, x.err = d.Lessee.AnswerHas(limit, id, s.Index())
			} else {
				x.has, x.err = call[bool](limit, d.Network, server, procHas, sought{id, s.Index()})
			}
			answers <- x
		}()
	}
	var silent error
	for range all {
		x := <-answers
		if x.has {
			return x.server, nil
		}
		if x.err != nil {
			silent = x.err
		}
	}
	switch {
	case silent != nil:
		return "", drover.Errorf(drover.Unavailable, "a server that may have execution %s does not answer: %w", id, silent)
	case !maps.Equal(all, incarnations(d.Store.Snapshot())): // what one had may have gone to another that was asked before
		return "", drover.Errorf(drover.Unavailable, "the servers that may have execution %s change", id)
	}
	return self, nil
}

// incarnations are the servers that keep runners, by incarnation.
func incarnations(s *store.Snapshot) map[uint64]string {
	all := map[uint64]string{}
	for l := range s.Lessees() {
		all[l.Incarnation] = l.Server
	}
	return all
}
