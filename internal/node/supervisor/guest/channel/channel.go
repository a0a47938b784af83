package channel

import "github.com/drover-project/drover/internal/node/supervisor/wire"

// Agent is the connection that a channel belongs to.
type Agent interface {
	// Write sends a whole frame. Frames of several goroutines do not mix.
	Write(frame []byte) error
	// Remove forgets a channel: frames that still come for it are dropped.
	Remove(channel uint32)
}

// Channel answers one request.
type Channel struct {
	Agent Agent
	ID    uint32
}

// Send sends a small frame.
func (c Channel) Send(kind wire.Kind, payload []byte) error {
	return c.Agent.Write(wire.Frame(kind, 0, c.ID, payload))
}

// Ack acknowledges a stream's bytes up to the offset. That nobody hears it the connection's reader tells.
func (c Channel) Ack(stream uint8, offset int64) { _ = c.Agent.Write(wire.Ack(stream, c.ID, offset)) }

// Answer sends the answer, or the error. That nobody hears it the connection's reader tells.
func (c Channel) Answer(payload []byte, err error) {
	if err != nil {
		_ = c.Send(wire.KindError, wire.EncodeError(err))
		return
	}
	_ = c.Send(wire.KindReply, payload)
}

// Fail forgets the channel and sends the error.
func (c Channel) Fail(err error) {
	c.Agent.Remove(c.ID)
	c.Answer(nil, err)
}
