package nodes

import (
	"context"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/peercall"
)

// atLeader calls here while this server leads, else there, and waits for a leader for a while. The call must do no harm if it
// is made twice. Errors: those of what it does; Unavailable if no leader answers.
func atLeader[T any](
	ctx context.Context, f *Front, here func(context.Context) (T, error), there func(ctx context.Context, address string) (T, error),
) (answer T, err error) {
	d := f.deps
	for ends := d.Clock.Now().Add(hold); ; {
		changed := d.Servers.Changed()
		leader, ok := d.Servers.Leader()
		switch {
		case !ok:
			err = drover.Errorf(drover.NotLeader, "No cluster leader")
		case leader.ID == d.Servers.Self().ID:
			answer, err = here(ctx)
		default:
			answer, err = whileItLeads(ctx, f, leader.ID, func(ctx context.Context) (T, error) { return there(ctx, leader.Address) })
		}
		code := drover.CodeOf(err)
		if err == nil || ctx.Err() != nil || code != drover.NotLeader && code != drover.Unavailable && code != drover.Canceled {
			return answer, err
		}
		left := ends.Sub(d.Clock.Now())
		if left <= 0 {
			return answer, drover.Errorf(drover.Unavailable, "asking the leader: %w", err)
		}
		clock.Await(ctx, d.Clock, min(left, askAgain), changed)
	}
}

// whileItLeads calls the leader. The call ends when another server leads: a leader that was stopped does not answer, and does
// not say so.
func whileItLeads[T any](ctx context.Context, f *Front, leader string, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, within)
	defer cancel()
	over := make(chan struct{})
	defer func() { <-over }()
	go func() { // ends with the call
		defer close(over)
		for ctx.Err() == nil {
			changed := f.deps.Servers.Changed()
			if now, ok := f.deps.Servers.Leader(); ok && now.ID != leader {
				cancel()
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	answer, err := call(ctx)
	cancel()
	return answer, err
}

// answer registers what this server answers while it leads.
func (f *Front) answer(mux *peercall.Mux) {
	peercall.Handle(mux, procHolds, func(_ context.Context, _, nodeID string) (bool, error) { return f.deps.Holds(nodeID), nil })
	peercall.Handle(mux, procAlive, func(context.Context, string, struct{}) (struct{}, error) { return struct{}{}, nil })
	peercall.Handle(mux, procIndex, func(ctx context.Context, _ string, _ struct{}) (uint64, error) { return f.index(ctx) })
	peercall.Handle(mux, procRegister, func(ctx context.Context, _ string, n *drover.Node) (exchange.Registration, error) {
		return f.deps.Control.Register(ctx, n)
	})
	peercall.Handle(mux, procHeartbeats, func(ctx context.Context, _ string, nodes []string) ([]result[exchange.Registration], error) {
		return f.beatAll(ctx, nodes), nil
	})
	peercall.Handle(mux, procPushes, func(ctx context.Context, _ string, list []push) ([]result[struct{}], error) {
		return f.pushAll(ctx, list), nil
	})
}

// index is that of the leader's state. Errors: NotLeader, Unavailable.
func (f *Front) index(ctx context.Context) (uint64, error) {
	if !f.direct() {
		return 0, drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	if err := f.deps.Log.Ready(ctx); err != nil {
		return 0, err
	}
	return f.deps.Store.Snapshot().Index(), nil
}

// beatAll handles the heartbeats of nodes. Most need nothing; a node that was given up needs an entry of the log.
func (f *Front) beatAll(ctx context.Context, nodes []string) []result[exchange.Registration] {
	return each(nodes, func(id string) (exchange.Registration, error) { return f.deps.Control.Heartbeat(ctx, id) })
}

func (f *Front) pushAll(ctx context.Context, list []push) []result[struct{}] {
	return each(list, func(p push) (struct{}, error) { return struct{}{}, f.push(ctx, p.NodeID, p.Updates) })
}

// each handles all items at once, as those that need the log go into one entry together.
func each[In, Out any](list []In, do func(In) (Out, error)) []result[Out] {
	out := make([]result[Out], len(list))
	var all sync.WaitGroup
	for i, in := range list {
		all.Go(func() { out[i] = resultOf(do(in)) }) // ends when it is done
	}
	all.Wait()
	return out
}

// askIndex asks for the index of the leader's state.
func (f *Front) askIndex(ctx context.Context) (uint64, error) {
	return atLeader(ctx, f, f.index, func(ctx context.Context, address string) (uint64, error) {
		return peercall.Call[uint64](ctx, f.deps.Servers.Client(), address, procIndex, struct{}{})
	})
}

func (f *Front) sendBeats(ctx context.Context, nodes []string) ([]result[exchange.Registration], error) {
	return sent(ctx, f, procHeartbeats, nodes, f.beatAll)
}

func (f *Front) sendPushes(ctx context.Context, list []push) ([]result[struct{}], error) {
	return sent(ctx, f, procPushes, list, f.pushAll)
}

// sent has the leader answer all items of the list. If it answers that it does not lead, that is the answer to all.
func sent[In, Out any](
	ctx context.Context, f *Front, procedure string, list []In, here func(context.Context, []In) []result[Out],
) ([]result[Out], error) {
	led := func(answers []result[Out], err error) ([]result[Out], error) {
		for _, a := range answers {
			if a.Code == drover.NotLeader.String() {
				return nil, drover.Errorf(drover.NotLeader, "%s", a.Error)
			}
		}
		return answers, err
	}
	return atLeader(ctx, f, func(ctx context.Context) ([]result[Out], error) { return led(here(ctx, list), nil) },
		func(ctx context.Context, address string) ([]result[Out], error) {
			return led(peercall.Call[[]result[Out]](ctx, f.deps.Servers.Client(), address, procedure, list))
		})
}
