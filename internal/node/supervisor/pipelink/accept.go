package pipelink

import (
	"io"
	"os"
	"sync"

	"github.com/drover-project/drover/internal/clock"
)

// acceptor is drover-init's end.
type acceptor struct {
	w     *writer
	clock clock.Clock
	take  func(fd int)

	mu   sync.Mutex
	open map[uint64]*carried // guarded by mu
}

// carried is one connection.
type carried struct {
	local    *os.File
	received uint64 // chunks; owned by the reader
	timer    clock.Timer
}

// Accept hands the socket of each new connection to take. It returns when in has ended.
func Accept(in io.Reader, out io.Writer, key Key, c clock.Clock, take func(fd int)) error {
	a := &acceptor{w: &writer{key: &key, d: fromInit, w: out}, clock: c, take: take, open: map[uint64]*carried{}}
	for r := (&reader{r: in, key: &key, d: fromAgent}); ; {
		k, err := r.next()
		if err == nil {
			err = a.handle(k)
		}
		if err != nil {
			return err
		}
	}
}

// handle gives a chunk to its connection, or begins one with a first chunk. Only an error of the pipes, or a lack of descriptors, ends
// all.
func (a *acceptor) handle(k chunk) error {
	a.mu.Lock()
	x := a.open[k.connection]
	a.mu.Unlock()
	if x == nil {
		if k.number != 1 || k.kind != kindData {
			return nil // what is left of one that was dropped
		}
		var err error
		if x, err = a.begin(k.connection); err != nil {
			return err
		}
	}
	x.received++
	if k.number != x.received || k.kind == kindClose { // something is missing: it cannot go on
		a.drop(k.connection)
		return nil
	}
	x.timer.Reset(silence)
	if _, err := x.local.Write(k.payload); err != nil {
		a.drop(k.connection)
	}
	return nil
}

// begin makes a connection's pair of sockets. The zeros before its first answer free a reader that waits for the rest of a cut chunk.
func (a *acceptor) begin(id uint64) (*carried, error) {
	fds, err := pair()
	if err != nil {
		return nil, err
	}
	if err := a.w.pad(); err != nil {
		return nil, err
	}
	x := &carried{local: file(fds[0]), timer: a.clock.AfterFunc(silence, func() { a.drop(id) })}
	a.mu.Lock()
	a.open[id] = x
	a.mu.Unlock()
	a.take(fds[1])
	go func() { // ends when either end closes the connection
		a.w.copyOut(x.local, id, new(uint64))
		a.drop(id)
	}()
	return x, nil
}

// drop forgets a connection, which both sides then see as closed. It may be called more than once.
func (a *acceptor) drop(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.open[id]; x != nil {
		x.timer.Stop()
		_ = x.local.Close()
		delete(a.open, id)
	}
}
