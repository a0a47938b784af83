package channel

import (
	"io"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/buffer"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Transfer is a channel of bytes: in through In, out through Write.
type Transfer struct {
	Channel
	In  *Inbox
	out *Outbox
}

// NewTransfer returns a transfer of which nothing was sent yet.
func NewTransfer(c Channel) *Transfer {
	return &Transfer{Channel: c, In: NewInbox(func(offset int64) { c.Ack(0, offset) }), out: NewOutbox()}
}

// Frame takes a frame of the agent's.
func (t *Transfer) Frame(h wire.Header, p []byte) {
	switch h.Kind {
	case wire.KindData:
		t.In.Data(p)
	case wire.KindEnd:
		t.In.End()
	case wire.KindAck:
		if offset, err := wire.ParseAck(p); err == nil {
			t.out.Ack(offset)
		}
	default: // from a newer agent
	}
}

// Gone ends both directions.
func (t *Transfer) Gone(bool) {
	t.In.Close()
	t.out.Close()
}

// Write sends data as the agent's window allows. Errors: io.ErrClosedPipe when the agent wants no more.
func (t *Transfer) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		offset, n := t.out.Reserve(min(len(p)-written, wire.DataSize))
		if n == 0 {
			return written, io.ErrClosedPipe
		}
		b := buffer.Get()
		head := wire.DataHead(uint8(execution.Stdout), t.ID, offset, n)
		copy(b[:], head[:])
		copy(b[len(head):], p[written:written+n])
		err := t.Agent.Write(b[:len(head)+n])
		buffer.Put(b)
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}
