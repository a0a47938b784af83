package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// claim claims a runner as a client does, of the server that was asked, or the one that this one passes it on to. Failures are
// only logged: an empty pool or a server that starts is no breach.
func (w *World) claim(p *virtual.Proc, s *server, req execution.ClaimRequest) {
	at := s.number
	if w.quorum != nil && (s.runners == nil || !s.holds() || s.runners.core.Warm(req.Environment) == 0) {
		at = s.holder(req.Environment)
	}
	var err error
	if at == s.number {
		err = w.claimHere(p, s, req)
	} else {
		q := question{s.String(), at, max(req.Wait, 0) + peerCall, false}
		_, err = call(w.net, p, q, func(p *virtual.Proc, s *server) (struct{}, error) { return struct{}{}, w.claimHere(p, s, req) })
	}
	if err != nil {
		w.Say("claim of %s: %v", req.Environment, err)
	}
}

// claimHere claims a runner of the server, and checks that nobody got the same one before.
func (w *World) claimHere(p *virtual.Proc, s *server, req execution.ClaimRequest) error {
	r, err := s.runners.claim(p, req)
	if err != nil {
		return err
	}
	w.Say("claim of %s at %s: runner %s", req.Environment, s, virtual.Short(r.AllocID))
	if before, again := w.clients.handed[r.AllocID]; again {
		w.Breach("runner %s was handed out twice, by servers %d and %d", r.AllocID, before.by, s.number)
	}
	h := handed{by: s.number, at: w.Now, claim: r}
	if a := w.truth().Store().Snapshot().Allocation(r.AllocID); a != nil {
		if h.lease = a.Lease; w.quorum != nil && takenAway(a) {
			w.Breach("runner %s is handed out by %s after its lease was taken away", r.AllocID, s)
		}
		if w.quorum != nil && w.quorum.stopped[r.AllocID] {
			w.Breach("runner %s is handed out by %s after a plan stopped it", r.AllocID, s)
		}
	}
	w.clients.handed[r.AllocID] = h
	w.clients.held = append(w.clients.held, r.ID)
	w.pass(s, p, answered)
	return nil
}

// holder is the server with the most warm runners of an environment, as far as the state knows; the server itself if there are
// none. It is what server/lessee's Directory says.
func (s *server) holder(env string) int {
	snap, held, best := s.store.Snapshot(), map[int]int{}, s.number
	for a := range snap.ActiveAllocationsByJob(drover.DefaultNamespace, environment.JobOf(env).ID) {
		if k := s.keeper(a.ID); k >= 0 && a.Claim == nil && !a.Terminal() {
			if held[k]++; held[k] > held[best] {
				best = k
			}
		}
	}
	return best
}

// release gives a runner back. While it lives it is its claimer's, whatever happened to the servers.
func (w *World) release(p *virtual.Proc, s *server, i int) {
	id := w.clients.held[i]
	w.clients.held = slices.Delete(w.clients.held, i, i+1)
	at, allocID := s.number, runner.AllocOf(id)
	if w.quorum != nil {
		at = max(s.keeper(allocID), 0)
	}
	give := func(p *virtual.Proc, s *server) (struct{}, error) {
		err := s.runners.release(p, id)
		if drover.CodeOf(err) == drover.NotFound {
			w.checkKnown(s, id)
		}
		return struct{}{}, err
	}
	if at == s.number {
		_, _ = give(p, s) // what is wrong is found there
		return
	}
	if _, err := call(w.net, p, question{s.String(), at, peerCall, false}, give); err != nil {
		w.Say("release of %s: %v", virtual.Short(allocID), err)
	}
}

// checkKnown: a server that keeps a runner which was handed out and lives knows it.
func (w *World) checkKnown(s *server, id string) {
	a := w.truth().Store().Snapshot().Allocation(runner.AllocOf(id))
	env, _, _ := strings.Cut(id, "-")
	if a == nil || a.Terminal() || s.runners == nil || !s.runners.core.Knows(env) {
		return
	}
	if w.quorum != nil && (a.Lease != s.runners.lease || s.store.Index() < w.quorum.last() || len(s.runners.news) > 0) {
		return // it is another's by now, or was for a moment
	}
	w.Breach("runner %s was handed out, lives, and is not known", id)
}

// dispatch starts a child of a parameterized job, with a token that makes it one however often the client asks: it asks again
// until it was answered.
func (w *World) dispatch(p *virtual.Proc, s *server, parent string, o scenario.Options) error {
	token := "t" + string(rune('a'+o["token"]%8))
	for range 4 {
		out, err := s.intake.DispatchJob(w.ctx, drover.DispatchRequest{
			Namespace: drover.DefaultNamespace, ID: parent, IdempotencyToken: token,
		})
		if err == nil {
			w.checkToken(parent, token, out.DispatchedJobID)
			return nil
		}
		if code := drover.CodeOf(err); code != drover.Unavailable && code != drover.NotLeader && code != drover.Canceled {
			return err
		}
		w.Say("dispatch %s: %v, once more", token, err)
		p.Sleep(w.Between(0, 3*time.Second))
	}
	return nil
}

// checkToken: a token has one child, and every answer names it.
func (w *World) checkToken(parent, token, child string) {
	found := 0
	s := w.truth().Store().Snapshot()
	for j := range s.Jobs(drover.DefaultNamespace, parent+"/") {
		if j.DispatchIdempotencyToken == token {
			found++
		}
	}
	if found > 1 {
		w.Breach("token %s of %s has %d jobs", token, parent, found)
	}
	before := w.clients.tokens[parent+token]
	if before != "" && before != child && s.Job(drover.DefaultNamespace, before) != nil {
		w.Breach("token %s of %s gave %s, and now %s", token, parent, before, child)
	}
	w.clients.tokens[parent+token] = child
}
