package taskrunner

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/workload"
)

// How long a renewal that failed waits before it is tried again.
const (
	renewAgain     = 5 * time.Second
	renewAgainMost = 2 * time.Minute
)

// renew has the tokens of the task renewed while it runs, until the returned function is called.
func (r *Runner) renew(ctx context.Context, w work, h driver.Handle) (end func()) {
	r.mu.Lock()
	due := ending(r.record.Tokens)
	r.mu.Unlock()
	if r.shared.Signer == nil || len(due) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	clock.Go(r.shared.Clock, func() { // ends with ctx
		defer close(done)
		r.renewal(ctx, w, h, due)
	})
	return func() {
		cancel()
		<-done
	}
}

// ending are the tokens that have an end.
func ending(lives map[string]localstate.Life) map[string]localstate.Life {
	out := maps.Clone(lives)
	maps.DeleteFunc(out, func(_ string, l localstate.Life) bool { return l.Expires.IsZero() })
	return out
}

// renewal waits until tokens are due, and renews those that are, until ctx ends or control refuses them.
func (r *Runner) renewal(ctx context.Context, w work, h driver.Handle, lives map[string]localstate.Life) {
	again := renewAgain
	for len(lives) > 0 {
		next, names := r.due(lives)
		clock.Sleep(ctx, r.shared.Clock, next.Sub(r.shared.Clock.Now()))
		if ctx.Err() != nil {
			return
		}
		fresh, err := r.request(w).Renew(ctx, r.shared.Signer, names)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.shared.Log.Warn("a task's tokens could not be renewed", "alloc", r.allocID, "task", r.name, "error", err,
				"identities", strings.Join(slices.Sorted(maps.Keys(names)), ","), "again_ms", again.Milliseconds())
			if code := drover.CodeOf(err); code == drover.Forbidden || code == drover.NotFound {
				return // the allocation has ended, as control knows, or is another node's
			}
			clock.Sleep(ctx, r.shared.Clock, again)
			again = min(2*again, renewAgainMost)
			continue
		}
		again = renewAgain
		maps.Copy(lives, ending(fresh))
		err = r.change(ctx, func(t *localstate.Task) {
			t.Tokens = maps.Clone(t.Tokens) // it may be being written
			maps.Copy(t.Tokens, fresh)
		})
		if err != nil && ctx.Err() == nil {
			r.shared.Log.Error("the renewal of a task's tokens could not be stored", "alloc", r.allocID, "task", r.name, "error", err)
		}
		r.tell(ctx, w.task, h, names)
	}
}

// due says when the first token is to be renewed, and which are by then, or so soon after that they go with it.
func (r *Runner) due(lives map[string]localstate.Life) (first time.Time, names map[string]bool) {
	at := map[string]time.Time{}
	for name, l := range lives {
		ttl := l.Expires.Sub(l.Made)
		at[name] = l.Made.Add(claims.Half(ttl, r.chance(name, l)))
		if first.IsZero() || at[name].Before(first) {
			first = at[name]
		}
	}
	names = map[string]bool{}
	for name, when := range at {
		if l := lives[name]; when.Sub(first) <= l.Expires.Sub(l.Made)/10 {
			names[name] = true
		}
	}
	return first, names
}

// chance is a number in [0, 1) that differs between tasks, identities and renewals.
func (r *Runner) chance(name string, l localstate.Life) float64 {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s/%s/%s/%d", r.allocID, r.name, name, l.Made.UnixNano())
	return float64(h.Sum32()) / (1 << 32)
}

// tell tells the task of its new tokens, as its identities say: one restart is enough for all of them, and one signal of a kind.
func (r *Runner) tell(ctx context.Context, t *drover.Task, h driver.Handle, names map[string]bool) {
	var signals []string
	for _, w := range t.AllIdentities() {
		if !names[w.Name] {
			continue
		}
		name := w.Name
		if w.IsDefault() {
			name = workload.DefaultIdentity
		}
		switch w.ChangeMode {
		case workload.IdentityRestart:
			r.post(taskmachine.Restart{Reason: fmt.Sprintf("Identity[%s]: its token was renewed", name)})
			return
		case workload.IdentitySignal:
			if !slices.Contains(signals, w.ChangeSignal) {
				signals = append(signals, w.ChangeSignal)
			}
		}
	}
	for _, signal := range signals {
		e := taskmachine.NewEvent(drover.TaskSignaling, fmt.Sprintf("Task being sent signal %s: a token was renewed", signal), "signal", signal)
		e.TaskSignal = signal
		r.post(taskmachine.Noted{Event: e})
		if err := h.Signal(ctx, signal); err != nil && ctx.Err() == nil {
			r.shared.Log.Warn("a task could not be told of its new token", "alloc", r.allocID, "task", r.name, "signal", signal, "error", err)
		}
	}
}
