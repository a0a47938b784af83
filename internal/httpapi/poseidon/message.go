package poseidon

import (
	"context"
	"strconv"

	"github.com/coder/websocket"
)

// message builds the contract's messages in one buffer; type first, then data, and no other key ever.
type message struct{ buf []byte }

func (m *message) text(kind string, data []byte) []byte {
	m.buf = append(append(append(m.buf[:0], `{"type":"`...), kind...), '"')
	if data != nil {
		m.buf = appendQuoted(append(m.buf, `,"data":`...), data)
	}
	m.buf = append(m.buf, '}')
	return m.buf
}

func (p *peer) send(ctx context.Context, kind string, data []byte) error {
	return p.conn.Send(ctx, websocket.MessageText, p.message.text(kind, data))
}

func (p *peer) exit(ctx context.Context, code int) error {
	text := `{"type":"exit","data":` + strconv.Itoa(int(exitCode(code))) + `}`
	p.conn.Join() // with the closing
	return p.conn.Send(ctx, websocket.MessageText, []byte(text))
}
