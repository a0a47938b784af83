package server

import (
	"io"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// openFiles starts file work. It is done inside of the guest, so that no path can lead out, with the rights of the
// guest's default user unless the request is privileged.
func (c *conn) openFiles(channel uint32, op wire.Op, d *wire.Decoder) {
	t := newTransfer(c, channel)
	work := map[wire.Op]func(*transfer, *wire.Decoder) error{
		wire.OpFileList: c.s.listFiles, wire.OpFileRead: c.s.readFile, wire.OpFileApply: c.s.applyFiles,
		wire.OpFileWrite: c.s.writeFile, wire.OpArchive: c.s.archive, wire.OpExtract: c.s.extract,
	}[op]
	if work == nil {
		c.fail(channel, drover.Errorf(drover.NotImplemented, "this supervisor does not know operation %d", op))
		return
	}
	c.add(channel, t)
	go func() { // ends with the work, or when the agent closes the channel and so ends its streams
		err := work(t, d)
		c.remove(channel)
		if err != nil {
			c.fail(channel, err)
			return
		}
		_ = c.write(wire.Frame(wire.KindEnd, 0, channel, nil))
	}()
}

// transfer is a channel of file work: bytes in through its inbox, bytes out through Write.
type transfer struct {
	c       *conn
	channel uint32
	in      *inbox
	out     outbox
}

func newTransfer(c *conn, channel uint32) *transfer {
	t := &transfer{c: c, channel: channel}
	t.in = newInbox(func(offset int64) { _ = c.write(wire.Ack(0, channel, offset)) })
	t.out.init()
	return t
}

func (t *transfer) frame(h wire.Header, p []byte) {
	switch h.Kind {
	case wire.KindData:
		t.in.data(p)
	case wire.KindEnd:
		t.in.end()
	case wire.KindAck:
		if offset, err := wire.ParseAck(p); err == nil {
			t.out.ack(offset)
		}
	default: // from a newer agent
	}
}

func (t *transfer) gone(bool) {
	t.in.close()
	t.out.close()
}

// reply sends the head of a streamed answer.
func (t *transfer) reply(payload []byte) { t.c.reply(t.channel, payload) }

// Write sends data as the agent's window allows.
func (t *transfer) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		offset, n := t.out.reserve(min(len(p)-written, wire.DataSize))
		if n == 0 {
			return written, io.ErrClosedPipe
		}
		b := buffers.Get().(*frameBuffer)
		head := wire.DataHead(uint8(execution.Stdout), t.channel, offset, n)
		copy(b[:], head[:])
		copy(b[len(head):], p[written:written+n])
		err := t.c.write(b[:len(head)+n])
		buffers.Put(b)
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}
