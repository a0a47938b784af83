package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrShutdown is the cause of contexts that end because the process stops.
var ErrShutdown = errors.New("shutting down")

// Part is something with a life: Run blocks until ctx ends or it fails.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Group runs parts in rings. On stop the rings are stopped one after the other, the last given first; each is waited
// for before the next is stopped. Any part that fails stops the group with its error as cause.
type Group struct{ rings [][]Part }

// Ring adds a ring. What is added later depends on what was added before, and is stopped before it.
func (g *Group) Ring(parts ...Part) { g.rings = append(g.rings, parts) }

// Run starts all rings in order and blocks until ctx ended or a part failed, and all parts have returned.
func (g *Group) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	cancels := make([]context.CancelCauseFunc, len(g.rings))
	waits := make([]*sync.WaitGroup, len(g.rings))
	base := context.WithoutCancel(ctx)
	for i, ring := range g.rings {
		ringCtx, cancel := context.WithCancelCause(base)
		cancels[i], waits[i] = cancel, &sync.WaitGroup{}
		for _, p := range ring {
			waits[i].Go(func() { // ends when ringCtx ends
				err := p.Run(ringCtx)
				if ringCtx.Err() == nil {
					select {
					case failed <- partError(p.Name, err):
					default:
					}
				}
			})
		}
	}
	var cause error
	select {
	case <-ctx.Done():
	case cause = <-failed:
	}
	for i := len(g.rings) - 1; i >= 0; i-- {
		if cause != nil {
			cancels[i](cause)
		} else {
			cancels[i](ErrShutdown)
		}
		waits[i].Wait()
	}
	return cause
}

func partError(name string, err error) error {
	if err == nil {
		return fmt.Errorf("%s ended by itself", name)
	}
	return fmt.Errorf("%s: %w", name, err)
}
