package poseidon

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"unicode/utf8"

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
	return p.conn.Write(ctx, websocket.MessageText, text)
}

func (p *peer) exit(ctx context.Context, code int) error {
	text := `{"type":"exit","data":` + strconv.Itoa(int(exitCode(code))) + `}`
	return p.conn.Write(ctx, websocket.MessageText, []byte(text))
}

// splitUTF8 returns what can be sent of tail and data together, and the beginning of a character at its end that
// must wait for its rest. Bytes that are no UTF-8 anyway are not held back.
func splitUTF8(tail, data []byte) (whole, rest []byte) {
	if len(tail) > 0 {
		data = append(tail, data...) // tail is ours, and short
	}
	for back := 1; back <= min(utf8.UTFMax-1, len(data)); back++ {
		c := data[len(data)-back]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-back:]) {
			cut := len(data) - back
			return data[:cut], bytes.Clone(data[cut:])
		}
		break
	}
	return data, nil
}
