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

// holding is a leader's wish that runners of this server are not handed out. It ends when the leader says so, or by itself: the
// leader may be gone.
type holding struct {
	end   func()
	timer clock.Timer
}

// How long a server waits for another to withhold runners, and how long that does so at most.
const (
	withholdFor = 3 * time.Second
	heldFor     = time.Minute
)

// Withhold keeps runners that are about to be stopped from being handed out, at whichever servers they are leased to, until
// giveBack is called. Those that were handed out are in the state as claimed when it returns. Errors: Unavailable: a server
// that may have handed some out does not answer. If it goes on like that, its incarnation soon ends.
func (l *Lessee) Withhold(ctx context.Context, allocIDs []string) (giveBack func(), err error) {
	at := map[string][]string{}
	life := l.life.Load()
	for _, id := range allocIDs {
		server := l.cfg.Server
		if (life == nil || life.lease != 0) && l.deps.Lead != nil && l.deps.Owner != nil {
			server = l.deps.Owner(id) // without one nobody can hand it out
		}
		at[server] = append(at[server], id)
	}
	own := func() {}
	if life != nil && len(at[l.cfg.Server]) > 0 {
		own = life.Runners.Withhold(ctx, at[l.cfg.Server])
	}
	delete(at, l.cfg.Server)
	delete(at, "")
	limit, cancel := l.deps.Clock.WithTimeout(ctx, withholdFor)
	defer cancel()
	var asked sync.WaitGroup
	errs, token := make(chan error, len(at)), ""
	if len(at) > 0 {
		token = l.deps.IDs.New()
	}
	for server, ids := range at {
		asked.Go(func() { errs <- l.deps.Peers.Withhold(limit, server, token, ids) }) // ends with limit
	}
	asked.Wait()
	giveBack = func() { l.giveBack(ctx, own, slices.Collect(maps.Keys(at)), token) }
	for range at {
		if e := <-errs; e != nil {
			err = drover.Errorf(drover.Unavailable, "a server that may have handed out runners does not answer: %w", e)
		}
	}
	if err != nil {
		giveBack()
		return nil, err
	}
	return giveBack, nil
}

// giveBack tells all these servers that they may hand out again what was not stopped.
func (l *Lessee) giveBack(ctx context.Context, own func(), at []string, token string) {
	own()
	for _, server := range at {
		go func() { // ends with the time
			limit, cancel := l.deps.Clock.WithTimeout(context.WithoutCancel(ctx), withholdFor)
			defer cancel()
			if err := l.deps.Peers.GiveBack(limit, server, token); err != nil {
				l.deps.Log.Debug("a server withholds runners for a minute", "error", err)
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
	end := sync.OnceFunc(life.Runners.Withhold(ctx, allocIDs))
	if ctx.Err() != nil || life.Runners.Pending(allocIDs) {
		end()
		return drover.Errorf(drover.Unavailable, "runners that were handed out are not recorded yet")
	}
	h := &holding{end: end}
	h.timer = l.deps.Clock.AfterFunc(heldFor, func() { l.AnswerGiveBack(token) }) // ends at once
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[token] = h
	return nil
}

// AnswerGiveBack ends what AnswerWithhold began with the same token.
func (l *Lessee) AnswerGiveBack(token string) {
	l.mu.Lock()
	h := l.held[token]
	delete(l.held, token)
	l.mu.Unlock()
	if h != nil {
		h.timer.Stop()
		h.end()
	}
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
