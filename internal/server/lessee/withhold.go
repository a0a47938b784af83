package lessee

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// holding is a leader's wish that runners of this server are not handed out.
type holding struct {
	life  *Life
	end   func()
	timer clock.Timer
}

// How long a server waits for another to withhold runners, and how long that does so before it asks whether it still is to.
const (
	withholdFor = 3 * time.Second
	heldFor     = time.Minute
)

// Withhold keeps runners that are about to be stopped from being handed out, at whichever servers they are leased to, until
// giveBack is called and they know what became of the runners. settled says that this server's state has it. Those that were handed out
// are in the state as claimed when it returns. leases are the incarnations that withhold them, and 0 for what is leased to nobody: one that
// begins later knows nothing of it. Errors: Unavailable: a server that may have handed some out does not answer. If it goes on
// like that, its incarnation soon ends.
func (l *Lessee) Withhold(ctx context.Context, allocIDs []string) (leases []uint64, giveBack func(settled bool), err error) {
	life := l.life.Load()
	at, leases := l.holders(allocIDs, life != nil && life.lease == 0)
	var own *holding
	switch {
	case !at[l.cfg.Server]:
	case life != nil:
		if own = l.withhold(ctx, life, allocIDs); own == nil {
			return nil, nil, drover.Errorf(drover.Unavailable, "the execution service ends")
		}
	default: // its journal may have claims that are not recorded, and it may be leased those that nobody has yet
		return nil, nil, drover.Errorf(drover.Unavailable, "the execution service has not begun")
	}
	delete(at, l.cfg.Server)
	limit, cancel := l.deps.Clock.WithTimeout(ctx, withholdFor)
	defer cancel()
	var asked sync.WaitGroup
	errs, token := make(chan error, len(at)), ""
	if len(at) > 0 {
		token = l.want()
	}
	for server := range at {
		asked.Go(func() { errs <- l.deps.Peers.Withhold(limit, server, token, allocIDs) }) // ends with limit
	}
	asked.Wait()
	giveBack = func(settled bool) { l.giveBack(ctx, own, slices.Collect(maps.Keys(at)), token, settled) }
	for range at {
		if e := <-errs; e != nil {
			err = drover.Errorf(drover.Unavailable, "a server that may have handed out runners does not answer: %w", e)
		}
	}
	if err == nil && len(at) > 0 && l.deps.Linearize != nil { // what they have as claimed may be on its way to the state here
		err = l.deps.Linearize(limit)
	}
	if err != nil {
		giveBack(true) // nothing was done
		return nil, nil, err
	}
	return leases, giveBack, nil
}

// withhold withholds runners of a life; nil if that has ended, and may have given them to other servers. Until its end is called the life
// gives none away.
func (l *Lessee) withhold(ctx context.Context, life *Life, allocIDs []string) *holding {
	life.holdings.Add(1)
	if l.life.Load() != life {
		life.holdings.Add(-1)
		return nil
	}
	end := life.Runners.Withhold(ctx, allocIDs)
	return &holding{life: life, end: sync.OnceFunc(func() {
		end()
		life.holdings.Add(-1)
	})}
}

// holders are the servers that may hand out some of the runners, and their incarnations. One that is not leased yet may be leased to any
// of them before it is stopped, and one whose server leaves too. So each withholds all of them. The incarnations are read before anybody
// is asked: what is leased to one that begins meanwhile is not among those that are withheld.
func (l *Lessee) holders(allocIDs []string, alone bool) (at map[string]bool, leases []uint64) {
	at, leases = map[string]bool{}, []uint64{0}
	nobodyElse := l.deps.Lead == nil || l.deps.Owner == nil
	if alone || nobodyElse {
		at[l.cfg.Server] = true
	}
	if nobodyElse {
		return at, leases
	}
	lessees := l.deps.Lessees() // also of one that is alone for as long as it takes to see that it is not any more
	for _, id := range allocIDs {
		if server := l.deps.Owner(id); server != "" {
			at[server] = true
			continue
		}
		for _, one := range lessees {
			at[one.Server] = true
		}
	}
	for _, one := range lessees {
		if at[one.Server] {
			leases = append(leases, one.Incarnation)
		}
	}
	return at, leases
}

// want makes a token of what is withheld at other servers.
func (l *Lessee) want() (token string) {
	token = l.deps.IDs.New()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wants[token] = true
	return token
}

// AnswerWants reports whether this server, which leads, still wants withheld what it gave the token. Errors: NotLeader.
func (l *Lessee) AnswerWants(token string) (bool, error) {
	if !l.deps.Leads() {
		return false, drover.Errorf(drover.NotLeader, "No cluster leader")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wants[token], nil
}

// giveBack tells all these servers that they may hand out again what was not stopped.
func (l *Lessee) giveBack(ctx context.Context, own *holding, at []string, token string, settled bool) {
	switch {
	case own == nil:
	case settled:
		own.end()
	default:
		go l.settle(own) //nolint:contextcheck // ends when it knows, or with the service, not with the call
	}
	l.mu.Lock()
	delete(l.wants, token)
	l.mu.Unlock()
	for _, server := range at {
		go func() { // ends with the time
			limit, cancel := l.deps.Clock.WithTimeout(context.WithoutCancel(ctx), withholdFor)
			defer cancel()
			if err := l.deps.Peers.GiveBack(limit, server, token); err != nil {
				l.deps.Log.Debug("a server withholds runners until it asks", "error", err)
			}
		}()
	}
}

// AnswerWithhold withholds runners for the leader. Errors: NotLeader: there is no service that could; Unavailable: some were
// handed out and are not recorded yet.
func (l *Lessee) AnswerWithhold(ctx context.Context, token string, allocIDs []string) error {
	life := l.life.Load()
	if life == nil {
		return drover.Errorf(drover.NotLeader, "the execution service has not begun")
	}
	h := l.withhold(ctx, life, allocIDs)
	if h == nil {
		return drover.Errorf(drover.NotLeader, "the execution service ends")
	}
	if ctx.Err() != nil || life.Runners.Pending(allocIDs) {
		h.end()
		return drover.Errorf(drover.Unavailable, "runners that were handed out are not recorded yet")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.timer = l.deps.Clock.AfterFunc(heldFor, func() { l.overdue(token) }) //nolint:contextcheck // ends when the leader answers, or does not
	l.held[token] = h
	return nil
}

// AnswerGiveBack ends what AnswerWithhold began with the same token, once this server knows what became of the runners. It does not wait
// for that.
func (l *Lessee) AnswerGiveBack(token string) {
	l.mu.Lock()
	h := l.held[token]
	delete(l.held, token)
	l.mu.Unlock()
	if h != nil {
		h.timer.Stop()
		go l.settle(h) // ends when it knows, or with the service
	}
}

// overdue looks whether the leader still wants something withheld: it may be gone, or its word was lost.
func (l *Lessee) overdue(token string) {
	l.mu.Lock()
	h := l.held[token]
	l.mu.Unlock()
	if h == nil {
		return
	}
	if h.life.ctx.Err() == nil {
		limit, cancel := l.deps.Clock.WithTimeout(h.life.ctx, withholdFor)
		defer cancel()
		wanted, err := l.AnswerWants(token)
		if drover.CodeOf(err) == drover.NotLeader {
			wanted, err = l.deps.Peers.Wants(limit, token)
		}
		if err != nil || wanted {
			h.timer.Reset(withholdFor)
			return
		}
	}
	l.AnswerGiveBack(token)
}

// settle ends a holding once this server's state has what became of the runners, or their service has ended. The leader's state may be
// ahead of this one, and a plan of a leader that is none any more may be committed by the next.
func (l *Lessee) settle(h *holding) {
	for l.deps.Linearize != nil {
		limit, cancel := l.deps.Clock.WithTimeout(h.life.ctx, withholdFor)
		err := l.deps.Linearize(limit)
		cancel()
		if err == nil {
			break
		}
		if !clock.Sleep(h.life.ctx, l.deps.Clock, retry) {
			return
		}
	}
	h.end()
}

// Warm reports whether this server can hand out a runner of the environment at once.
func (l *Lessee) Warm(environmentID string) bool {
	life := l.life.Load()
	return life != nil && (life.lease == 0 || l.holds()) && life.Runners.Warm(environmentID) > 0
}

// Has reports whether this server has the execution.
func (l *Lessee) Has(executionID string) bool {
	life := l.life.Load()
	return life != nil && life.Executions.Has(executionID)
}

// AnswerHas is Has for a server whose state has the index. It waits until this server's state has it too, since a runner may
// have been taken over by then. Errors: Unavailable: the execution may still be found.
func (l *Lessee) AnswerHas(ctx context.Context, executionID string, index uint64) (bool, error) {
	if l.deps.Reach != nil {
		if err := l.deps.Reach(ctx, index); err != nil {
			return false, drover.Errorf(drover.Unavailable, "waiting for what others know: %w", err)
		}
	}
	life := l.life.Load()
	if life == nil {
		return false, drover.Errorf(drover.Unavailable, "the execution service has not begun")
	}
	return life.Executions.Finds(ctx, executionID)
}
