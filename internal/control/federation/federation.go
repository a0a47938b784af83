package federation

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/telemetry"
)

// Deps are what a replicator works with.
type Deps struct {
	// Pull returns the authoritative region's objects once its index differs from after, or a while has passed: those that changed since,
	// if the epoch is still the same.
	Pull func(ctx context.Context, after uint64, epoch string) (Objects, error)
	// State returns this region's objects.
	State func() Objects
	// Seal encrypts the secrets of a method with this region's keys.
	Seal func(ctx context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error)
	// Propose writes into this region's log.
	Propose func(ctx context.Context, c command.Command) error
	Clock   clock.Clock
	Log     *slog.Logger
}

// The wait after a pull that failed doubles from the one to the other.
const (
	leastWait = time.Second
	mostWait  = time.Minute
)

// Run replicates until ctx ends.
func Run(ctx context.Context, d Deps) {
	var failed telemetry.Seldom
	f := &follower{Deps: d}
	for wait := leastWait; ctx.Err() == nil; {
		switch err := f.follow(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed.Warn(d.Log, d.Clock.Now(), "asking the authoritative region for what regions share", "error", err)
			clock.Sleep(ctx, d.Clock, wait)
			wait = min(2*wait, mostWait)
		default:
			wait = leastWait
		}
		if f.there.Epoch == "" && f.there.Index > 0 { // what is missing is asked for anew, and the answer does not wait for a change
			clock.Sleep(ctx, d.Clock, mostPull)
		}
	}
}

// follower writes what differs.
type follower struct {
	Deps
	there   Objects // as it was last told
	early   bool    // of what catchUp writes
	refused telemetry.Seldom
}

// follow pulls once, and writes what differs. Errors: those of Pull.
func (f *follower) follow(ctx context.Context) error {
	next, err := f.Pull(ctx, f.there.Index, f.there.Epoch)
	if err != nil {
		return err
	}
	if next.Epoch != "" && next.Epoch == f.there.Epoch {
		next = f.there.with(next)
	}
	f.there = next
	if f.catchUp(ctx) && clock.Sleep(ctx, f.Clock, leastWait) {
		f.catchUp(ctx)
	}
	return nil
}

// catchUp writes what differs. early: some of it needs a cluster version that is not there yet. A region that begins raises it within a
// moment, and nobody could log in there while the next pull waits for a change.
func (f *follower) catchUp(ctx context.Context) (early bool) {
	f.early = false
	for _, c := range Differences(f.State(), f.there) {
		f.write(ctx, c)
	}
	return f.early
}

// write proposes a command, and its parts each by itself if it is refused. What is refused is tried again after the next pull.
func (f *follower) write(ctx context.Context, c command.Command) {
	err := f.propose(ctx, c)
	if err == nil || ctx.Err() != nil {
		return
	}
	if parts := apart(c); len(parts) > 0 {
		for _, part := range parts {
			f.write(ctx, part)
		}
		return
	}
	f.early = f.early || drover.CodeOf(err) == drover.NotImplemented
	f.refused.Warn(f.Log, f.Clock.Now(), "following the authoritative region", "command", c.Kind(), "error", err)
}

// propose writes a command into the log, without a secret in clear text.
func (f *follower) propose(ctx context.Context, c command.Command) error {
	if upsert, ok := c.(*command.UpsertAuthMethods); ok {
		next := &command.UpsertAuthMethods{}
		for _, m := range upsert.Methods {
			m, err := f.Seal(ctx, m)
			if err != nil {
				return err
			}
			next.Methods = append(next.Methods, m)
		}
		c = next
	}
	return f.Propose(ctx, c)
}

// mostPull is how long a pull waits for a change: what was refused before is tried again then.
const mostPull = 20 * time.Second

// Store is the state that Answer waits for.
type Store interface {
	Watch(table, key string) <-chan struct{}
}

// Answer is what a pull gets: the objects that now returns, once their index differs from after or the epoch is another one. A lower index
// tells of a state that went back.
func Answer(ctx context.Context, s Store, c clock.Clock, ask Ask, now func(after uint64) Objects) Objects {
	timer := c.NewTimer(mostPull)
	defer timer.Stop()
	for {
		changed := make([]<-chan struct{}, 0, len(all(true)))
		for _, table := range all(ask.Token != nil) {
			changed = append(changed, s.Watch(table, ""))
		}
		out := now(ask.After)
		if out.Epoch != ask.Epoch || out.Index < ask.After {
			return now(0)
		}
		if out.Index != ask.After || !wait(ctx, timer.C(), changed) {
			return out
		}
	}
}

// wait waits until one of the tables changes, and reports whether one did before the time was over.
func wait(ctx context.Context, over <-chan time.Time, changed []<-chan struct{}) bool {
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}, {Dir: reflect.SelectRecv, Chan: reflect.ValueOf(over)},
	}
	for _, ch := range changed {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)})
	}
	which, _, _ := reflect.Select(cases)
	return which > 1
}
