package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// gather sends what many callers ask for in one message. What comes while messages are under way goes together in the next one.
type gather[In, Out any] struct {
	clock clock.Clock
	send  func(ctx context.Context, list []In) ([]result[Out], error)
	most  int // messages under way
	// slow is after what time a message does not hold up others: one of its items waits for something that is its own. 0: it does.
	slow time.Duration

	mu      sync.Mutex // guards what follows
	waiting []*asked[In, Out]
	flying  int
}

// size bounds how many callers' questions are in one message.
const size = 1000

// result is the answer to one, or why there is none.
type result[Out any] struct {
	Value Out
	Code  string // of the error; "" = there is none
	Error string
}

// resultOf puts an answer into a message.
func resultOf[Out any](value Out, err error) result[Out] {
	if err != nil {
		return result[Out]{Code: drover.CodeOf(err).String(), Error: err.Error()}
	}
	return result[Out]{Value: value}
}

// take returns what the message says.
func (r result[Out]) take() (Out, error) {
	if r.Code != "" {
		return r.Value, drover.Errorf(drover.ParseCode(r.Code), "%s", r.Error)
	}
	return r.Value, nil
}

// asked is who waits for an answer.
type asked[In, Out any] struct {
	in   In
	done chan struct{} // closed when answer and err are set
	result[Out]
	err error
}

// ask waits for the answer. What was sent is not taken back when ctx ends.
func (g *gather[In, Out]) ask(ctx context.Context, in In) (Out, error) {
	q := &asked[In, Out]{in: in, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, q)
	if g.flying < g.most {
		g.flying++
		go g.fly(context.WithoutCancel(ctx)) // ends when nobody waits; send has a time limit
	}
	g.mu.Unlock()
	if !clock.Await(ctx, g.clock, clock.Forever, q.done) || ctx.Err() != nil { // whichever was seen first
		var none Out
		return none, drover.Errorf(drover.Canceled, "asking the leader: %w", context.Cause(ctx))
	}
	if q.err != nil {
		return q.Value, q.err
	}
	return q.take()
}

// fly sends messages until nobody waits, or until one of them was so slow that another goroutine sends the next.
func (g *gather[In, Out]) fly(ctx context.Context) {
	for {
		g.mu.Lock()
		list := g.waiting[:min(size, len(g.waiting))]
		g.waiting = g.waiting[len(list):]
		if len(list) == 0 {
			g.waiting = nil
			g.flying--
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		if g.carry(ctx, list) {
			return
		}
	}
}

// carry sends one message and hands out its answers. It reports whether it was slow: it is then not under way for others any more.
func (g *gather[In, Out]) carry(ctx context.Context, list []*asked[In, Out]) (slow bool) {
	in := make([]In, len(list))
	for i, q := range list {
		in[i] = q.in
	}
	inTime := func() bool { return true }
	if g.slow > 0 {
		inTime = g.clock.AfterFunc(g.slow, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if len(g.waiting) == 0 {
				g.flying--
				return
			}
			go g.fly(ctx) // as in ask
		}).Stop
	}
	answers, err := g.send(ctx, in)
	slow = !inTime()
	if err == nil && len(answers) != len(list) {
		err = drover.Errorf(drover.Unavailable, "the leader answers %d of %d", len(answers), len(list))
	}
	for i, q := range list {
		if q.err = err; err == nil {
			q.result = answers[i]
		}
		close(q.done)
	}
	return slow
}
