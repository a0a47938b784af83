package supervisor

import (
	"context"
	"io"
	"sync"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/wake"
)

// frameReader reads frames; a payload belongs to the caller.
type frameReader struct {
	r          io.Reader
	buf        []byte // grows with what comes: most connections only wait for an exit
	start, end int
}

// A connection's buffer begins small and may grow to what holds some frames of output.
const (
	readSize    = 128 << 10
	readAtFirst = 1 << 10
)

// next reads one frame, with its payload in memory of its own. A payload longer than what is buffered is read into place.
func (f *frameReader) next() (wire.Header, []byte, error) {
	for f.end-f.start < wire.HeaderSize {
		f.makeRoom()
		n, err := f.r.Read(f.buf[f.end:])
		if n == 0 && err != nil {
			return wire.Header{}, nil, err
		}
		f.end += n
	}
	h, err := wire.ParseHeader(f.buf[f.start:])
	if err != nil {
		return h, nil, err
	}
	f.start += wire.HeaderSize
	p := make([]byte, h.Length)
	n := copy(p, f.buf[f.start:f.end])
	f.start += n
	if n < len(p) {
		_, err = io.ReadFull(f.r, p[n:])
	}
	return h, p, err
}

// makeRoom moves what is left to the buffer's start, and doubles a buffer that the last read has filled.
func (f *frameReader) makeRoom() {
	buf := f.buf
	if len(buf) == 0 {
		buf = make([]byte, readAtFirst)
	} else if f.end == len(buf) && len(buf) < readSize {
		buf = make([]byte, 2*len(buf))
	}
	f.end = copy(buf, f.buf[f.start:f.end])
	f.start, f.buf = 0, buf
}

// message is a frame that was received.
type message struct {
	kind    wire.Kind
	stream  execution.Stream
	payload []byte
}

// call is one channel. Data in its queue is bounded by the window, because its reader gives the credit.
type call struct {
	c      *Client
	id     uint32
	wake   wake.Signal // something was queued, or it ended
	credit wake.Signal // acked moved, or it ended

	mu    sync.Mutex
	queue []message // guarded by mu
	ended error     // guarded by mu
	acked int64     // of what we send; guarded by mu
	// refused: an error or the end came; what we send goes nowhere. Guarded by mu.
	refused bool
}

// deliver queues a frame, and never blocks: the reader serves all calls of the connection. An acknowledgement only moves the window.
func (k *call) deliver(h wire.Header, p []byte) {
	k.mu.Lock()
	if h.Kind == wire.KindAck {
		if offset, err := wire.ParseAck(p); err == nil {
			k.acked = max(k.acked, offset)
		}
	} else {
		k.queue = append(k.queue, message{h.Kind, execution.Stream(h.Stream), p})
		k.refused = k.refused || h.Kind == wire.KindError || h.Kind == wire.KindEnd
	}
	k.mu.Unlock()
	if h.Kind == wire.KindAck {
		k.credit.Send()
	} else {
		k.wake.Send()
		k.credit.Send()
	}
}

// end lets next fail once the queue is empty. The first error stays.
func (k *call) end(err error) {
	k.mu.Lock()
	if k.ended == nil {
		k.ended = err
	}
	k.mu.Unlock()
	k.wake.Send()
	k.credit.Send()
}

// next returns the next message. One goroutine at a time. Errors: the supervisor's, Gone, ctx's.
func (k *call) next(ctx context.Context) (message, error) {
	for {
		if m, ok, err := k.poll(); ok || err != nil {
			return m, err
		}
		select {
		case <-k.wake.C():
		case <-ctx.Done():
			return message{}, context.Cause(ctx)
		}
	}
}

// poll is next without waiting.
func (k *call) poll() (m message, ok bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		return message{}, false, k.ended
	}
	m = k.queue[0]
	k.queue[0] = message{}
	k.queue = k.queue[1:]
	if len(k.queue) > 0 || k.ended != nil {
		k.wake.Send()
	}
	if m.kind == wire.KindError {
		return message{}, false, wire.DecodeError(m.payload)
	}
	return m, true, nil
}

// send sends data of a stream from the offset on, as the window allows. over, if not nil, is closed when the other
// side no longer wants it.
func (k *call) send(ctx context.Context, stream execution.Stream, offset int64, p []byte, over <-chan struct{}) (int, error) {
	sent := 0
	for sent < len(p) {
		k.mu.Lock()
		space := int(k.acked + wire.Window - offset)
		ended, stop := k.ended, k.refused
		k.mu.Unlock()
		if ended != nil || stop {
			return sent, ended
		}
		if space <= 0 {
			select {
			case <-k.credit.C():
			case <-over:
				return sent, nil
			case <-ctx.Done():
				return sent, context.Cause(ctx)
			}
			continue
		}
		n := min(space, wire.DataSize, len(p)-sent)
		head := wire.DataHead(uint8(stream), k.id, offset, n)
		if err := k.c.write(head[:], p[sent:sent+n]); err != nil {
			return sent, errLost
		}
		sent += n
		offset += int64(n)
	}
	return sent, nil
}

// consumed waits until the other side has consumed what was sent, up to the offset; or until it wants no more.
func (k *call) consumed(ctx context.Context, offset int64, over <-chan struct{}) error {
	for {
		k.mu.Lock()
		acked, ended, stop := k.acked, k.ended, k.refused
		k.mu.Unlock()
		if acked >= offset || stop {
			return nil
		}
		if ended != nil {
			return ended
		}
		select {
		case <-k.credit.C():
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// given reports whether the supervisor took what was sent up to the offset.
func (k *call) given(offset int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.acked >= offset
}

// forget takes the call out of the connection.
func (k *call) forget() {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	delete(k.c.calls, k.id)
}

// answered reports whether the supervisor wants no more.
func (k *call) answered() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}
