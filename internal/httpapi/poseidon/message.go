package poseidon

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/coder/websocket"
)

// message builds the contract's messages in one buffer; type first, then data, and no other key ever.
type message struct{ buf bytes.Buffer }

func (m *message) text(kind string, data []byte) ([]byte, error) {
	m.buf.Reset()
	m.buf.WriteString(`{"type":"` + kind + `"`)
	if data != nil {
		m.buf.WriteString(`,"data":`)
		e := json.NewEncoder(&m.buf)
		e.SetEscapeHTML(false)
		if err := e.Encode(string(data)); err != nil {
			return nil, err
		}
		m.buf.Truncate(m.buf.Len() - 1) // Encode's newline
	}
	m.buf.WriteByte('}')
	return m.buf.Bytes(), nil
}

func (p *peer) send(ctx context.Context, kind string, data []byte) error {
	text, err := p.message.text(kind, data)
	if err != nil {
		return err
	}
	return p.conn.Send(ctx, websocket.MessageText, text)
}

func (p *peer) exit(ctx context.Context, code int) error {
	text := `{"type":"exit","data":` + strconv.Itoa(int(exitCode(code))) + `}`
	return p.conn.Send(ctx, websocket.MessageText, []byte(text))
}
