package workloads

import (
	"context"
	"io"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/link/wire"
)

// StartExecution starts a command.
func (c *Client) StartExecution(ctx context.Context, allocID, task string, spec execution.Spec) (execution.Session, error) {
	return c.open(ctx, sessionOpen{AllocID: allocID, Task: task, Spec: &spec})
}

// AttachExecution attaches to a command.
func (c *Client) AttachExecution(
	ctx context.Context, allocID, task, executionID string, from execution.Offsets,
) (execution.Session, error) {
	return c.open(ctx, sessionOpen{AllocID: allocID, Task: task, Attach: executionID, From: from})
}

// open bounds the opening by ctx; the session itself lives until Close.
func (c *Client) open(ctx context.Context, o sessionOpen) (execution.Session, error) {
	o.SessionID = id.Random{}.New()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	fail := func(err error) (execution.Session, error) {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, wire.Unwrap(err)
	}
	client := connect.NewClient[sessionOpen, sessionEvent](c.HTTP, Base+procSession, wire.ClientOptions)
	stream, err := client.CallServerStream(life, connect.NewRequest(&o))
	if err != nil {
		return fail(err)
	}
	if !stream.Receive() {
		err := stream.Err()
		_ = stream.Close()
		return fail(err)
	}
	if !stop() {
		_ = stream.Close()
		return fail(ctx.Err())
	}
	s := &sessionClient{
		id: o.SessionID, client: c, stream: stream, cancel: cancel, life: life,
		frames: make(chan execution.Frame), ended: make(chan struct{}),
	}
	go s.receive() // ends when the stream ends or Close cancels it
	return s, nil
}

// sessionClient is an execution's session over the link.
type sessionClient struct {
	id     string
	client *Client
	stream *connect.ServerStreamForClient[sessionEvent]
	life   context.Context // ends with Close
	cancel context.CancelFunc
	frames chan execution.Frame
	ended  chan struct{} // closed when receive returned; err is set then
	err    error
	over   bool // the receipt was read; owned by Next's caller
}

// receive hands frames to Next until the stream or the session ends. Then err says how the stream ended.
func (s *sessionClient) receive() {
	defer close(s.ended)
	defer func() { _ = s.stream.Close() }()
	for s.stream.Receive() {
		f := s.stream.Msg().Frame
		if f == nil {
			continue
		}
		select {
		case s.frames <- *f:
		case <-s.life.Done():
			s.err = drover.Errorf(drover.Canceled, "link: the session was closed")
			return
		}
	}
	s.err = wire.Unwrap(s.stream.Err())
}

// Next returns the next frame.
func (s *sessionClient) Next(ctx context.Context) (execution.Frame, error) {
	if s.over {
		return execution.Frame{}, io.EOF
	}
	select {
	case f := <-s.frames:
		s.over = f.Receipt != nil
		return f, nil
	case <-ctx.Done():
		return execution.Frame{}, ctx.Err()
	case <-s.ended:
		if s.err == nil {
			return execution.Frame{}, io.EOF
		}
		return execution.Frame{}, s.err
	}
}

// Write sends stdin and waits until the program's pipe took it.
func (s *sessionClient) Write(ctx context.Context, p []byte) error {
	return s.op(ctx, sessionOp{Stdin: p})
}

// CloseStdin ends stdin.
func (s *sessionClient) CloseStdin(ctx context.Context) error {
	return s.op(ctx, sessionOp{CloseStdin: true})
}

// Resize changes the terminal's size.
func (s *sessionClient) Resize(ctx context.Context, size execution.WindowSize) error {
	return s.op(ctx, sessionOp{Resize: &size})
}

// Signal sends a signal.
func (s *sessionClient) Signal(ctx context.Context, name string) error {
	return s.op(ctx, sessionOp{Signal: name})
}

// op sends one operation on the session, such as input or a signal. Errors: Gone once the session was closed.
func (s *sessionClient) op(ctx context.Context, op sessionOp) error {
	op.SessionID = s.id
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)() //nolint:contextcheck // the session's end ends it too
	client := connect.NewClient[sessionOp, wire.Empty](s.client.HTTP, Base+procSessionOp, wire.ClientOptions)
	_, err := wire.Call(ctx, client, connect.NewRequest(&op))
	if err != nil && s.life.Err() != nil {
		return drover.Errorf(drover.Gone, "link: the session was closed")
	}
	return err
}

// untakenWithin is how long the node has to hear that the receipt was not taken.
const untakenWithin = 2 * time.Second

// Untaken is Close for a user who may not have got the receipt: the node keeps it for the next. A connection that broke says as much.
func (s *sessionClient) Untaken() {
	select {
	case <-s.ended:
	default:
		limit, cancel := context.WithTimeout(s.life, untakenWithin)
		_ = s.op(limit, sessionOp{Untaken: true}) // a node that does not hear it finds the connection broken
		cancel()
	}
	_ = s.Close() // detaching cannot fail
}

// Close detaches.
func (s *sessionClient) Close() error {
	s.cancel()
	<-s.ended
	return nil
}
