package poseidon

import (
	"context"
	"strconv"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/jsontext"
)

// message builds the contract's messages in one buffer; type first, then data, and no other key ever.
type message struct{ buf []byte }

// text renders one message. nil data leaves the key out, while empty data is "". The slice is valid until the next
// call.
func (m *message) text(kind string, data []byte) []byte {
	m.buf = append(append(append(m.buf[:0], `{"type":"`...), kind...), '"')
	if data != nil {
		m.buf = jsontext.AppendString(append(m.buf, `,"data":`...), data)
	}
	m.buf = append(m.buf, '}')
	return m.buf
}

// send writes one message of output or state. Only one goroutine may call it, since the messages share a buffer.
func (p *peer) send(ctx context.Context, kind string, data []byte) error {
	return p.conn.Send(ctx, websocket.MessageText, p.message.text(kind, data))
}

// exit sends the exit code, the only message whose data is a number.
func (p *peer) exit(ctx context.Context, code int) error {
	text := `{"type":"exit","data":` + strconv.Itoa(int(exitCode(code))) + `}`
	p.conn.Join() // with the closing
	return p.conn.Send(ctx, websocket.MessageText, []byte(text))
}
