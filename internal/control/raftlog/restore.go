package raftlog

import (
	"context"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/wake"
)

// Term is the log's present term of office.
func (l *Log) Term() uint64 { return l.raft.CurrentTerm() }

// Hold ends the terms that Follow runs here, and begins none until release is called: what leads decides by a state that is about to
// be replaced. Errors: Conflict if somebody else holds them; Canceled if ctx ends before they have.
func (l *Log) Hold(ctx context.Context) (release func(), err error) {
	if !l.terms.hold() {
		return nil, drover.Errorf(drover.Conflict, "the state is being replaced already")
	}
	for {
		changed := l.terms.changed.C()
		if l.terms.none() {
			return l.terms.release, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			l.terms.release()
			return nil, drover.Errorf(drover.Canceled, "waiting until what leads has ended: %w", context.Cause(ctx))
		}
	}
}

// terms counts the terms of office that Follow runs.
type terms struct {
	changed wake.Broadcast // whenever what follows changes

	mu      sync.Mutex // guards what follows
	open    int
	holding bool
}

// begin counts a term; false if none is to begin.
func (t *terms) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holding {
		t.open++
	}
	return !t.holding
}

func (t *terms) end() {
	t.mu.Lock()
	t.open--
	t.mu.Unlock()
	t.changed.Send()
}

// hold lets no term begin; false if that is so already.
func (t *terms) hold() bool {
	t.mu.Lock()
	before := t.holding
	t.holding = true
	t.mu.Unlock()
	t.changed.Send()
	return !before
}

func (t *terms) release() {
	t.mu.Lock()
	t.holding = false
	t.mu.Unlock()
	t.changed.Send()
}

func (t *terms) held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holding
}

func (t *terms) none() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open == 0
}
