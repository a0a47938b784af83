package pipelink

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

const (
	pingEvery = 10 * time.Second
	// silence is after how long without a ping an agent is taken for dead: the pipes do not tell.
	silence = 3 * pingEvery
)

// writer writes chunks, whole ones.
type writer struct {
	key *Key
	d   direction

	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// write writes one, and counts it in sent, which mu guards.
func (w *writer) write(k kind, connection uint64, sent *uint64, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	*sent++
	w.buf = chunk{k, connection, *sent, payload}.put(w.buf[:0], w.key, w.d)
	_, err := w.w.Write(w.buf)
	return err
}

// pad writes as many zeros as a chunk that was cut at the worst place could still ask for.
func (w *writer) pad() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(make([]byte, padding))
	return err
}

// copyOut sends what is written into the local end until that is closed, and then says so.
func (w *writer) copyOut(local io.Reader, connection uint64, sent *uint64) {
	buf := make([]byte, MaxPayload)
	for {
		n, err := local.Read(buf)
		if n > 0 && w.write(kindData, connection, sent, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = w.write(kindClose, connection, sent, nil) // the other end may be gone
			return
		}
	}
}

// Dial opens a connection over the stream, which it closes with the connection: Read gives drover-init's stdout, Write
// goes to its stdin. connection must be a number that was never used with this drover-init. The result is a socket.
func Dial(stream io.ReadWriteCloser, key Key, connection uint64, c clock.Clock) (*os.File, error) {
	w := &writer{key: &key, d: fromAgent, w: stream}
	if err := w.pad(); err != nil {
		return nil, err
	}
	fds, err := pair()
	if err != nil {
		return nil, err
	}
	ours, sent, done := file(fds[0]), new(uint64), make(chan struct{})
	go func() { // ends when the connection is closed, or the stream is broken
		defer close(done)
		w.copyOut(ours, connection, sent)
		_ = stream.Close()
	}()
	go func() { // ends with the stream
		copyIn(&reader{r: stream, key: &key, d: fromInit}, ours, connection)
		_ = ours.Close()
	}()
	go func() { // ends with the first
		t := c.NewTimer(pingEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C():
				_ = w.write(kindPing, connection, sent, nil) // the first notices what is broken
				t.Reset(pingEvery)
			case <-done:
				return
			}
		}
	}()
	return file(fds[1]), nil
}

// copyIn hands on what comes for the connection. It returns when that was closed, the stream ended, or something is
// missing.
func copyIn(r *reader, local io.Writer, connection uint64) {
	for number := uint64(1); ; {
		c, err := r.next()
		if err != nil {
			return
		}
		if c.connection != connection {
			continue
		}
		if c.number != number || c.kind != kindData {
			return
		}
		number++
		if _, err := local.Write(c.payload); err != nil {
			return
		}
	}
}

// pair makes a connected pair of sockets, for the poller.
func pair() (fds [2]int, err error) {
	fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fds, os.NewSyscallError("socketpair", err)
}

func file(fd int) *os.File { return os.NewFile(uintptr(fd), "carried") }
