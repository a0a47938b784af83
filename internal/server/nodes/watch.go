package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// procAlive asks a server for a sign of life.
const procAlive = "Nodes.Alive"

// How often a server asks each other one for a sign of life, and how long that may take. With the time that nodes need to look for
// themselves (link) a server that stands still is left within two seconds.
const (
	lookEvery  = 300 * time.Millisecond
	lookWithin = 400 * time.Millisecond
	// misses is how many times in a row a server has to be silent: one may only be busy for a moment.
	misses = 2
	// late is by how much more than lookWithin an answer must not be found missing: then it is this server that is busy.
	late = 200 * time.Millisecond
	// tellAgain is how long after nodes were told of a server they are told again.
	tellAgain = 10 * time.Second
)

// watched is what this server knows of another one. It belongs to who asks it.
type watched struct {
	done chan struct{} // closed when it is not asked any more
	told time.Time     // when the nodes were told last
}

// Watch looks whether the other servers answer, until ctx ends, and tells nodes of one that does not. Thousands of nodes need not ask
// so often by themselves then. It finds who stands still: one that is killed refuses connections, which nodes notice at once.
func (f *Front) Watch(ctx context.Context) error {
	if !f.deps.Servers.Clustered() {
		<-ctx.Done()
		return nil
	}
	var asked sync.WaitGroup
	defer asked.Wait()
	list := map[string]*watched{}
	for ctx.Err() == nil {
		for _, s := range f.deps.Servers.List() {
			if s.ID == f.deps.Servers.Self().ID || !s.Alive {
				continue
			}
			w := list[s.ID]
			if w == nil {
				w = &watched{}
				list[s.ID] = w
			} else if w.asked() {
				continue
			}
			w.done = make(chan struct{})
			asked.Go(func() { // ends with the answers, whose time is limited
				defer close(w.done)
				f.look(ctx, s, w)
			})
		}
		clock.Sleep(ctx, f.deps.Clock, lookEvery)
	}
	return nil
}

// asked reports whether the server is asked already.
func (w *watched) asked() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// look asks a server until it answers, or is suspected.
func (f *Front) look(ctx context.Context, s servers.Server, w *watched) {
	for range misses {
		if !f.isSilent(ctx, s) {
			return
		}
	}
	if now := f.deps.Clock.Now(); ctx.Err() == nil && (w.told.IsZero() || now.Sub(w.told) >= tellAgain) {
		w.told = now
		f.deps.Suspect(s.ID)
	}
}

// isSilent reports whether the server does not answer in time. Who refuses is not silent, and who is asked late is not asked in time.
func (f *Front) isSilent(ctx context.Context, s servers.Server) bool {
	began := f.deps.Clock.Now()
	try, cancel := f.deps.Clock.WithTimeout(ctx, lookWithin)
	defer cancel()
	_, err := peercall.Call[struct{}](try, f.deps.Servers.Client(), s.Address, procAlive, struct{}{})
	took := f.deps.Clock.Now().Sub(began)
	return err != nil && drover.CodeOf(err) != drover.NotImplemented && took >= lookWithin && took < lookWithin+late
}
