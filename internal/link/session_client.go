package link

import (
	"context"
	"io"
	"sync"

	"connectrpc.com/connect"

	"drover"
)

// StartExecution starts a command.
func (c *workloadsClient) StartExecution(ctx context.Context, allocID, task string, spec drover.ExecutionSpec) (drover.Session, error) {
	return c.open(ctx, sessionOpen{AllocID: allocID, Task: task, Spec: &spec})
}

// AttachExecution attaches to a command.
func (c *workloadsClient) AttachExecution(ctx context.Context, allocID, task, id string, from drover.Offsets) (drover.Session, error) {
	return c.open(ctx, sessionOpen{AllocID: allocID, Task: task, Attach: id, From: from})
}

// open bounds the opening by ctx; the session itself lives until Close.
func (c *workloadsClient) open(ctx context.Context, o sessionOpen) (drover.Session, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	s := connect.NewClient[sessionOp, sessionEvent](c.http, nodeBase+procSession, c.opts).CallBidiStream(life)
	fail := func(err error) (drover.Session, error) {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fromWire(err)
	}
	if err := s.Send(&sessionOp{Open: &o}); err != nil {
		if _, rerr := s.Receive(); rerr != nil {
			err = rerr
		}
		return fail(err)
	}
	if _, err := s.Receive(); err != nil {
		return fail(err)
	}
	if !stop() {
		return fail(ctx.Err())
	}
	session := &sessionClient{stream: s, life: life, cancel: cancel, frames: make(chan drover.Frame), acks: map[uint64]chan error{}, ended: make(chan struct{})}
	go session.receive() // ends when the stream ends or Close cancels it
	return session, nil
}

type sessionClient struct {
	stream *connect.BidiStreamForClient[sessionOp, sessionEvent]
	life   context.Context // ends with Close
	cancel context.CancelFunc
	frames chan drover.Frame
	ended  chan struct{} // closed when receive returned; err is set then
	err    error

	mu   sync.Mutex // guards the following, and Send
	seq  uint64
	acks map[uint64]chan error
}

func (s *sessionClient) receive() {
	defer close(s.ended)
	for {
		ev, err := s.stream.Receive()
		if err != nil {
			s.err = fromWire(err)
			return
		}
		if ev.Frame == nil {
			s.acknowledge(ev)
			continue
		}
		select {
		case s.frames <- *ev.Frame:
		case <-s.life.Done():
			s.err = drover.Errorf(drover.Canceled, "link: session closed")
			return
		}
	}
}

func (s *sessionClient) acknowledge(ev *sessionEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reply, ok := s.acks[ev.Ack]; ok {
		delete(s.acks, ev.Ack)
		var err error
		if ev.Error != "" {
			err = drover.Errorf(drover.ParseCode(ev.Code), "%s", ev.Error)
		}
		reply <- err
	}
}

// Next returns the next frame.
func (s *sessionClient) Next(ctx context.Context) (drover.Frame, error) {
	select {
	case f := <-s.frames:
		return f, nil
	case <-ctx.Done():
		return drover.Frame{}, ctx.Err()
	case <-s.ended:
		if s.err == nil {
			return drover.Frame{}, io.EOF
		}
		return drover.Frame{}, s.err
	}
}

// Write sends stdin and waits until the node took it.
func (s *sessionClient) Write(ctx context.Context, p []byte) error {
	return s.op(ctx, sessionOp{Stdin: p})
}

// CloseStdin ends stdin.
func (s *sessionClient) CloseStdin(ctx context.Context) error {
	return s.op(ctx, sessionOp{CloseStdin: true})
}

// Resize changes the terminal's size.
func (s *sessionClient) Resize(ctx context.Context, size drover.WindowSize) error {
	return s.op(ctx, sessionOp{Resize: &size})
}

// Signal sends a signal.
func (s *sessionClient) Signal(ctx context.Context, name string) error {
	return s.op(ctx, sessionOp{Signal: name})
}

func (s *sessionClient) op(ctx context.Context, op sessionOp) error {
	reply := make(chan error, 1)
	s.mu.Lock()
	s.seq++
	op.Seq = s.seq
	s.acks[op.Seq] = reply
	err := s.stream.Send(&op)
	if err != nil {
		delete(s.acks, op.Seq)
	}
	s.mu.Unlock()
	if err != nil {
		return drover.Errorf(drover.Gone, "link: the execution's session ended")
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return drover.Errorf(drover.Gone, "link: the execution's session ended")
	}
}

// Close detaches.
func (s *sessionClient) Close() error {
	_ = s.stream.CloseRequest() // http2 does not notice a cancelled context while the request body is open
	s.cancel()
	<-s.ended
	return nil
}
