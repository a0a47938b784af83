package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// Session is an attachment to an execution over a websocket. It is a execution.Session. A context that ends during one of its
// calls ends the session (Canceled); attach again with the offsets reached. What the server refuses (stdin that the execution
// does not have, a terminal's size without a terminal, an unknown signal) is not done, and not told here. Client.SendStdin,
// Resize and Signal tell it.
type Session struct {
	conn    *websocket.Conn
	offsets [3]int64
	ended   bool

	given func(at int64) // hears how much of stdin the command was given; nil: the server is not asked

	mu sync.Mutex // guards id
	id string
}

var _ execution.Session = (*Session)(nil)

// Attach attaches to an execution, from the offsets on. Errors: NotFound, Unavailable, Canceled.
func (c *Client) Attach(ctx context.Context, id string, from execution.Offsets) (*Session, error) {
	return c.attach(ctx, id, from, url.Values{})
}

// Observe attaches to an execution, from the offsets on, only to read along. The program never waits for this session, which is
// told by a frame with Skipped what it was too slow for. Errors: as Attach.
func (c *Client) Observe(ctx context.Context, id string, from execution.Offsets) (*Session, error) {
	return c.attach(ctx, id, from, url.Values{"observe": {"true"}})
}

// resuming is the query of a session that counts its stdin.
func resuming() url.Values { return url.Values{"stdin": {"resume"}} }

func (c *Client) attach(ctx context.Context, id string, from execution.Offsets, query url.Values) (*Session, error) {
	query.Set("stdout", formatInt(from.Stdout))
	query.Set("stderr", formatInt(from.Stderr))
	conn, _, err := c.dial(ctx, []string{"execution", id, "attach"}, query, http.Header{})
	if err != nil {
		return nil, err
	}
	s := &Session{conn: conn, id: id}
	s.offsets[execution.Stdout], s.offsets[execution.Stderr] = from.Stdout, from.Stderr
	return s, nil
}

// maxHeader bounds a request that goes with the handshake, which spares a round trip. In base64 it is within the 8 KB that
// proxies let pass. A server that does not know the header, or never got it, waits for the first message.
const maxHeader = 4 << 10

// Execute starts a command and attaches to it, in one round trip. Errors of the command's start come from Next. Errors:
// NotFound and Gone (the runner), Unavailable, Canceled.
func (c *Client) Execute(ctx context.Context, runner string, r execution.Request) (*Session, error) {
	return c.execute(ctx, runner, r, nil)
}

func (c *Client) execute(ctx context.Context, runner string, r execution.Request, query url.Values) (*Session, error) {
	first, err := json.Marshal(r)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "encoding the request: %w", err)
	}
	headers := http.Header{}
	if len(first) <= maxHeader {
		headers.Set(execution.RequestHeader, base64.StdEncoding.EncodeToString(first))
	}
	conn, answered, err := c.dial(ctx, []string{"runner", runner, "execute"}, query, headers)
	if err != nil {
		return nil, err
	}
	if answered.Get(execution.RequestHeader) != "" {
		return &Session{conn: conn}, nil
	}
	if err := conn.Write(ctx, websocket.MessageText, first); err != nil {
		_ = conn.CloseNow()
		return nil, broken(ctx, "sending the request", err)
	}
	return &Session{conn: conn}, nil
}

func (c *Client) dial(ctx context.Context, path []string, query url.Values, headers http.Header) (*websocket.Conn, http.Header, error) {
	c.authorize(headers)
	address := "ws" + strings.TrimPrefix(c.url(path, query), "http") // https → wss
	conn, res, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: c.http, HTTPHeader: headers})
	switch {
	case err == nil:
		conn.SetReadLimit(1 << 20)
		return conn, res.Header, nil
	case res != nil && res.StatusCode >= http.StatusBadRequest:
		return nil, nil, problem(res)
	}
	return nil, nil, broken(ctx, "connecting", err)
}

// ID is the execution's id; after Execute it is known from the first frame on.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// tell tells how much of stdin the command was given.
func (s *Session) tell(at *int64) {
	if at != nil && s.given != nil {
		s.given(*at)
	}
}

// Next serves execution.Session. Errors: those of the server, Canceled when ctx ended, Unavailable when the connection broke:
// attach again with the offsets reached.
func (s *Session) Next(ctx context.Context) (execution.Frame, error) {
	for {
		if s.ended {
			return execution.Frame{}, io.EOF
		}
		kind, data, err := s.conn.Read(ctx)
		if errors.Is(err, io.EOF) { // which would say that the receipt was there
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return execution.Frame{}, broken(ctx, "reading from the execution", err)
		}
		if kind == websocket.MessageBinary {
			if f, ok := s.data(data); ok {
				return f, nil
			}
			continue
		}
		if f, ok, err := s.event(data); ok || err != nil {
			return f, err
		}
	}
}

func (s *Session) data(message []byte) (f execution.Frame, ok bool) {
	if len(message) < 2 || message[0] != byte(execution.Stdout) && message[0] != byte(execution.Stderr) {
		return f, false
	}
	stream := execution.Stream(message[0])
	f = execution.Frame{Stream: stream, Offset: s.offsets[stream], Data: message[1:]}
	s.offsets[stream] += int64(len(f.Data))
	return f, true
}

func (s *Session) event(text []byte) (f execution.Frame, ok bool, err error) {
	var m execution.Message
	if err := json.Unmarshal(text, &m); err != nil {
		return f, false, drover.Errorf(drover.Internal, "reading a message: %w", err)
	}
	switch m.Type {
	case execution.MessageStarted:
		s.mu.Lock()
		s.id = m.Execution
		s.mu.Unlock()
		s.tell(m.Stdin)
		return execution.Frame{Started: true, Pid: m.Pid, Stdin: m.Stdin}, true, nil
	case execution.MessageGiven:
		s.tell(m.Stdin)
	case execution.MessageRefused:
		if s.given != nil && drover.ParseCode(m.Code) != drover.Invalid { // stdin did not arrive
			return f, false, drover.Errorf(drover.Unavailable, "%s", m.Message)
		}
	case execution.MessageSkipped:
		stream := execution.Stdout
		if m.Stream == execution.MessageStderr {
			stream = execution.Stderr
		}
		s.offsets[stream] = m.Offset
		return execution.Frame{Stream: stream, Offset: m.Offset, Skipped: true}, true, nil
	case execution.MessageReceipt:
		s.ended = true
		return execution.Frame{Receipt: m.Receipt}, true, nil
	case execution.MessageError:
		s.ended = true
		return f, false, drover.Errorf(drover.ParseCode(m.Code), "%s", m.Message)
	}
	return f, false, nil // a newer server's
}

// Write serves execution.Session.
func (s *Session) Write(ctx context.Context, p []byte) error {
	return s.write(ctx, websocket.MessageBinary, p)
}

// CloseStdin serves execution.Session.
func (s *Session) CloseStdin(ctx context.Context) error {
	return s.say(ctx, execution.Message{Type: execution.MessageCloseStdin})
}

// Resize serves execution.Session.
func (s *Session) Resize(ctx context.Context, size execution.WindowSize) error {
	return s.say(ctx, execution.Message{Type: execution.MessageResize, Rows: size.Rows, Cols: size.Cols})
}

// Signal serves execution.Session.
func (s *Session) Signal(ctx context.Context, name string) error {
	return s.say(ctx, execution.Message{Type: execution.MessageSignal, Signal: name})
}

func (s *Session) say(ctx context.Context, m execution.Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.write(ctx, websocket.MessageText, text)
}

func (s *Session) write(ctx context.Context, kind websocket.MessageType, p []byte) error {
	if err := s.conn.Write(ctx, kind, p); err != nil {
		return broken(ctx, "writing to the execution", err)
	}
	return nil
}

// broken is the error of a connection that failed, or that ctx ended.
func broken(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return drover.Errorf(drover.Canceled, "%s: %w", doing, context.Cause(ctx))
	}
	return drover.Errorf(drover.Unavailable, "%s: %w", doing, err)
}

// Close serves execution.Session.
func (s *Session) Close() error {
	if s.ended {
		return s.conn.Close(websocket.StatusNormalClosure, "")
	}
	return s.conn.CloseNow()
}
