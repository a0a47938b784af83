package native

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/runes"
	"github.com/drover-project/drover/internal/httpapi/socket"
	"github.com/drover-project/drover/internal/stack"
)

// maxMessage bounds what a client sends at once, in bytes.
const maxMessage = 16 << 20

// attach connects a client to an execution.
func (f *Face) attach(w http.ResponseWriter, r *http.Request) error {
	text, err := textMode(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	var from execution.Offsets
	if from.Stdout, err = offsetOf(q.Get("stdout")); err != nil {
		return err
	}
	if from.Stderr, err = offsetOf(q.Get("stderr")); err != nil {
		return err
	}
	id := r.PathValue("execution")
	if err := wantUpgrade(r); err != nil {
		return err
	}
	session, err := f.reader(r, from)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // detaching cannot fail
	conn, err := socket.Accept(w, r, f.Clock)
	if err != nil {
		return nil // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed regularly before
	p := &peer{conn: conn, text: text, session: session, id: id}
	p.resume(r)
	f.serve(r.Context(), p)
	return nil
}

// execute starts what the client's header or first message asks for, and stays attached to it. With a header the handshake
// is answered when the command was started, together with the message that says so.
func (f *Face) execute(w http.ResponseWriter, r *http.Request) error {
	text, err := textMode(r)
	if err != nil {
		return err
	}
	runner := r.PathValue("runner")
	if _, err := f.Runners.Runner(r.Context(), runner); err != nil {
		return err
	}
	if err := wantUpgrade(r); err != nil {
		return err
	}
	early, err := f.openEarly(r.Context(), r.Header.Get(execution.RequestHeader), runner)
	if err != nil {
		return err
	}
	accept := socket.Accept
	if early != nil {
		w.Header().Set(execution.RequestHeader, "taken")
		accept = socket.AcceptJoined
	}
	conn, err := accept(w, r, f.Clock)
	if err != nil {
		if early != nil && early.err == nil {
			_ = early.session.Close() // detaching cannot fail
		}
		return nil // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // closed regularly before
	conn.SetReadLimit(maxMessage)
	p := &peer{conn: conn, text: text}
	if early == nil {
		early = f.openFirst(r.Context(), conn.Conn, runner)
	}
	if p.session, err = early.session, early.err; err != nil {
		p.report(r.Context(), execution.MessageError, err)
		_ = conn.Close(websocket.StatusNormalClosure, "")
		return nil
	}
	defer p.session.Close() //nolint:errcheck // detaching cannot fail
	p.id = idOf(p.session)
	p.resume(r)
	f.serve(r.Context(), p)
	return nil
}

// opened is what became of a start.
type opened struct {
	session execution.Session
	err     error
}

// openEarly starts what the header's text asks for; nil if it is empty. Errors: Invalid.
func (f *Face) openEarly(ctx context.Context, text, runner string) (*opened, error) {
	if text == "" {
		return nil, nil // nothing was asked for yet
	}
	var req execution.Request
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = httpapi.UnmarshalStrict(raw, &req)
	}
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "%s is not an execution request in base64: %w", execution.RequestHeader, err)
	}
	if err := f.reveal(ctx, execution.NamespaceOf(runner), &req.Spec); err != nil {
		return nil, err
	}
	session, err := f.Executions.OpenRequest(ctx, runner, req)
	return &opened{session, err}, nil
}

// openFirst starts what the first message of the socket asks for. It never returns nil: the handshake is already
// answered, so that errors must travel as messages. Codes: Invalid for a late or malformed request, otherwise those
// of OpenRequest.
func (f *Face) openFirst(ctx context.Context, conn *websocket.Conn, runner string) *opened {
	data, err := f.readFirst(ctx, conn)
	if err != nil {
		return &opened{nil, err}
	}
	var req execution.Request
	if err := httpapi.UnmarshalStrict(data, &req); err != nil {
		return &opened{nil, drover.Errorf(drover.Invalid, "the first message is not an execution request: %w", err)}
	}
	if err := f.reveal(ctx, execution.NamespaceOf(runner), &req.Spec); err != nil {
		return &opened{nil, err}
	}
	session, err := f.Executions.OpenRequest(ctx, runner, req)
	return &opened{session, err}
}

// readFirst reads the first message. The socket is as usable as before when none comes in time, to say so: a Read whose
// context ends would close it. Errors: Invalid.
func (f *Face) readFirst(ctx context.Context, conn *websocket.Conn) ([]byte, error) {
	type message struct {
		data []byte
		err  error
	}
	got := make(chan message, 1)
	go func() { // ends with the message or the socket
		_, data, err := conn.Read(ctx)
		got <- message{data, err}
	}()
	late := f.Clock.NewTimer(f.FirstMessage)
	defer late.Stop()
	select {
	case m := <-got:
		if m.err != nil {
			return nil, drover.Errorf(drover.Invalid, "reading the first message: %w", m.err)
		}
		return m.data, nil
	case <-late.C():
		return nil, drover.Errorf(drover.Invalid, "no execution request came within %v, neither as the first message nor in the header %s",
			f.FirstMessage, execution.RequestHeader)
	}
}

// idOf is the execution's id, which sessions of the execution service know.
func idOf(s execution.Session) string {
	if named, ok := s.(interface{ ID() string }); ok {
		return named.ID()
	}
	return ""
}

// textMode reads the query's mode: true for "text", false for "binary" and for none. Errors: Invalid for any other
// value.
func textMode(r *http.Request) (bool, error) {
	switch mode := r.URL.Query().Get("mode"); mode {
	case "", "binary":
		return false, nil
	case "text":
		return true, nil
	default:
		return false, drover.Errorf(drover.Invalid, "mode: want binary or text, got %q", mode)
	}
}

// wantUpgrade refuses what cannot become a websocket before anything is started, or left, on its behalf. Errors:
// Invalid; Forbidden: of another site.
func wantUpgrade(r *http.Request) error {
	switch refusal := socket.Check(r); {
	case refusal == nil:
		return nil
	case refusal.Status == http.StatusForbidden:
		return drover.Errorf(drover.Forbidden, "this is a websocket: %s", refusal.Reason)
	default:
		return drover.Errorf(drover.Invalid, "this is a websocket: %s", refusal.Reason)
	}
}

// peer is the client of one attachment.
type peer struct {
	conn    *socket.Conn
	text    bool
	session execution.Session
	id      string
	tails   [3][]byte // of text mode: beginnings of characters
	frame   []byte
	given   func() int64 // how much of stdin the command was given; nil: the client does not want to know
}

// resume lets the client's stdin go on where that of its earlier attachments ended, if it asks for that.
func (p *peer) resume(r *http.Request) {
	s, ok := p.session.(interface {
		Resume()
		Given() int64
	})
	if ok && r.URL.Query().Get("stdin") == resumeStdin {
		s.Resume()
		p.given = s.Given
	}
}

// resumeStdin is the query's stdin of a client that goes on at another server, or over another connection, when one breaks.
const resumeStdin = "resume"

// serve lasts as long as the execution or its client.
func (f *Face) serve(ctx context.Context, p *peer) {
	p.conn.SetReadLimit(maxMessage)
	ctx, leave := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer p.conn.KeepAlive(ctx, f.PingEvery, leave)()
	defer leave(nil)
	helpers.Go(func() { // ends with the socket
		stack.Grow8K()
		leave(p.read(ctx, &helpers))
	})
	if err := p.relay(ctx); err != nil {
		if ctx.Err() == nil {
			p.report(ctx, execution.MessageError, err)
		} else {
			return
		}
	}
	_ = p.conn.Close(websocket.StatusNormalClosure, "")
}

// relay sends everything up to the receipt.
func (p *peer) relay(ctx context.Context) error {
	for {
		frame, err := p.session.Next(ctx)
		if err != nil {
			return err
		}
		joined := p.conn.JoinPending(p.session)
		switch {
		case frame.Started:
			err = p.send(ctx, execution.Message{Type: execution.MessageStarted, Execution: p.id, Pid: frame.Pid, Stdin: frame.Stdin})
		case frame.Receipt != nil:
			return p.finish(ctx, frame.Receipt)
		default:
			err = p.output(ctx, frame)
		}
		if err != nil {
			return err
		}
		if !joined {
			p.conn.Flush() // it may have had nothing to send yet
		}
	}
}

// finish sends the rest of both streams, then the receipt. In text mode a rest is the beginning of a character
// whose other bytes never came; it is sent as it is.
func (p *peer) finish(ctx context.Context, receipt *execution.Receipt) error {
	for _, s := range []execution.Stream{execution.Stdout, execution.Stderr} {
		if len(p.tails[s]) > 0 {
			if err := p.send(ctx, execution.Message{Type: streamNames[s], Data: string(p.tails[s])}); err != nil {
				return err
			}
		}
	}
	p.conn.Join() // with the closing
	return p.send(ctx, execution.Message{Type: execution.MessageReceipt, Receipt: receipt})
}

// streamNames are the message types, and the names, of the two output streams. Index 0, stdin, is never sent.
var streamNames = [...]string{execution.Stdout: execution.MessageStdout, execution.Stderr: execution.MessageStderr}

// output sends the bytes of one frame; before them, it tells of bytes that are no longer kept. A frame that only
// tells of such a gap has no bytes. Binary messages reuse one buffer, because Send has copied or written it when it
// returns.
func (p *peer) output(ctx context.Context, frame execution.Frame) error {
	if frame.Skipped {
		skipped := execution.Message{Type: execution.MessageSkipped, Stream: streamNames[frame.Stream], Offset: frame.Offset}
		if err := p.send(ctx, skipped); err != nil {
			return err
		}
	}
	if len(frame.Data) == 0 {
		return nil
	}
	if !p.text {
		p.frame = append(append(p.frame[:0], byte(frame.Stream)), frame.Data...)
		return p.conn.Send(ctx, websocket.MessageBinary, p.frame)
	}
	whole, tail := runes.Split(p.tails[frame.Stream], frame.Data)
	p.tails[frame.Stream] = tail
	if len(whole) == 0 {
		return nil
	}
	return p.send(ctx, execution.Message{Type: streamNames[frame.Stream], Data: string(whole)})
}

// send writes one JSON message as text. The goroutines of relay and act both call it, which is safe: the connection
// writes one message at a time.
func (p *peer) send(ctx context.Context, m execution.Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return p.conn.Send(ctx, websocket.MessageText, text)
}

// report sends an error to the client, which may have left.
func (p *peer) report(ctx context.Context, kind string, err error) {
	_ = p.send(ctx, execution.Message{Type: kind, Code: drover.CodeOf(err).String(), Message: err.Error()})
}

// read turns the client's messages into actions, done one after the other beside the reading.
func (p *peer) read(ctx context.Context, helpers *sync.WaitGroup) error {
	var actions *socket.Inbox[func() error] // most clients send nothing
	for {
		kind, data, err := p.conn.Read(ctx)
		if err != nil {
			return socket.ErrLeft
		}
		if actions == nil {
			actions = socket.NewInbox[func() error]()
			helpers.Go(func() { p.act(ctx, actions) }) // ends with ctx
		}
		if !actions.Put(ctx, p.conn, p.action(ctx, kind, data), len(data)) {
			return nil
		}
	}
}

// action turns one message into what act is to do. It only decodes, and never blocks or fails: a message that
// cannot be understood becomes an action that returns Invalid. Thereby the client gets its refusals in the order of
// its messages.
func (p *peer) action(ctx context.Context, kind websocket.MessageType, data []byte) func() error {
	if kind == websocket.MessageBinary {
		return func() error { return p.write(ctx, data) }
	}
	var m execution.Message
	if err := json.Unmarshal(data, &m); err != nil {
		return func() error {
			return drover.Errorf(drover.Invalid, "text messages are JSON objects, stdin is binary: %w", err)
		}
	}
	switch m.Type {
	case execution.MessageStdin:
		return func() error { return p.write(ctx, []byte(m.Data)) }
	case execution.MessageCloseStdin:
		return func() error { return p.refused(ctx, p.session.CloseStdin(ctx)) }
	case execution.MessageResize:
		return func() error { return resize(ctx, p.session, execution.WindowSize{Rows: m.Rows, Cols: m.Cols}) }
	case execution.MessageSignal:
		return func() error { return p.session.Signal(ctx, m.Signal) }
	}
	return func() error { return drover.Errorf(drover.Invalid, "type: unknown: %q", m.Type) }
}

// write gives the command stdin. A client that resumes hears how much that was so far, and that it has to attach again.
func (p *peer) write(ctx context.Context, data []byte) error {
	err := p.session.Write(ctx, data)
	if err == nil && p.given != nil && ctx.Err() == nil {
		return p.send(ctx, execution.Message{Type: execution.MessageGiven, Stdin: new(p.given())})
	}
	return p.refused(ctx, err)
}

// refused tells a client that resumes of what did not become of its stdin, so that it attaches again. It returns the error.
func (p *peer) refused(ctx context.Context, err error) error {
	if err != nil && p.given != nil && ctx.Err() == nil && drover.CodeOf(err) != drover.Invalid {
		p.report(ctx, execution.MessageRefused, err)
	}
	return err
}

// act does what the client asked for, or says why it cannot be done. What fails otherwise does so because the execution
// ended, which its receipt says.
func (p *peer) act(ctx context.Context, actions *socket.Inbox[func() error]) {
	for {
		do, ok := actions.Take(ctx)
		if !ok {
			return
		}
		if err := do(); drover.CodeOf(err) == drover.Invalid {
			p.report(ctx, execution.MessageRefused, err)
		}
	}
}
