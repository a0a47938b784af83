package evaluator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Limits of one evaluation. All must be set.
type Limits struct {
	Memory int64         // bytes, of the child's
	CPU    time.Duration // processor time; the kernel rounds up to a second
	Wall   time.Duration // from when a child took it up
	Answer int           // bytes
}

// Config of Children.
type Config struct {
	What    string // what is evaluated, for messages: "the template", "the job file"
	Limits  Limits
	Workers int           // evaluations at once
	Waiting int           // evaluations that may wait for others; more are refused
	Idle    time.Duration // after which a child that is not the last leaves
	Clock   clock.Clock
	Log     *slog.Logger
}

// Children keeps child processes. Its methods may be called by any goroutine.
type Children struct {
	cfg   Config
	slots chan struct{} // one for each evaluation under way
	work  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	waiting int
	idle    []*worker
	trim    clock.Timer // takes idle ones away; nil = none is due
	closed  bool
}

// New returns the children, of which there are none yet: Warm or the first evaluation starts one.
func New(cfg Config) *Children {
	return &Children{cfg: cfg, slots: make(chan struct{}, cfg.Workers)}
}

// Evaluate has a child evaluate the request by its function of that name. When ctx ends the child is killed. Errors:
// those of the function, TooLarge (over a limit), RateLimited (too many wait), Canceled, Unavailable (they are
// closed), Internal (no child can be started).
func (p *Children) Evaluate(ctx context.Context, name string, content []byte) ([]byte, error) {
	if len(content) > maxRequest {
		return nil, drover.Errorf(drover.TooLarge, "%s and its variables have more than %d MB", p.cfg.What, maxRequest>>20)
	}
	if err := p.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { <-p.slots }()
	w, err := p.take() //nolint:contextcheck // a start is of nobody's call: another one may get the child
	if err != nil {
		return nil, err
	}
	result, err := w.ask(ctx, name, content)
	if w.spent {
		w.end()
		p.Warm() //nolint:contextcheck // the next child is of nobody's call
		return result, err
	}
	p.put(w)
	return result, err
}

// enter waits for a slot. A call that has ended begins nothing.
func (p *Children) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	p.mu.Lock()
	if p.waiting >= p.cfg.Waiting {
		p.mu.Unlock()
		return drover.Errorf(drover.RateLimited, "%d others wait for %s of theirs to be evaluated: try again later", p.cfg.Waiting, p.cfg.What)
	}
	p.waiting++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take returns a child that lives, the one that worked last.
func (p *Children) take() (*worker, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, drover.Errorf(drover.Unavailable, "the agent stops")
		}
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return start(p.cfg)
		}
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if w.lives() {
			return w, nil
		}
		p.cfg.Log.Warn("an idle evaluator has ended", "reason", w.end())
	}
}

// put keeps a child for the next.
func (p *Children) put(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		w.end()
		return
	}
	p.idle = append(p.idle, w)
	if len(p.idle) > 1 && p.trim == nil {
		p.trim = p.cfg.Clock.AfterFunc(p.cfg.Idle, p.leaveOne)
	}
}

// leaveOne ends all idle children but one.
func (p *Children) leaveOne() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trim = nil
	for len(p.idle) > 1 {
		p.idle[0].end()
		p.idle = p.idle[1:]
	}
}

// Warm has a child started in the background if none is at hand.
func (p *Children) Warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) > 0 {
		return
	}
	p.work.Go(func() { // ends with the child's start, which is bounded
		w, err := start(p.cfg)
		if err != nil {
			p.cfg.Log.Error("no evaluator can be started: what needs one fails", "for", p.cfg.What, "error", err)
			return
		}
		p.put(w)
	})
}

// Close ends the children. Evaluations under way end when their callers' contexts do.
func (p *Children) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	if p.trim != nil {
		p.trim.Stop()
		p.trim = nil
	}
	p.mu.Unlock()
	for _, w := range idle {
		w.end()
	}
	p.work.Wait()
}
