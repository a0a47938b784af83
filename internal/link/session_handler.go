package link

import (
	"context"
	"errors"
	"io"
	"sync"

	"connectrpc.com/connect"

	"drover"
)

// serveSession joins a session's stream to the real session: one goroutine sends frames, this one performs ops.
func serveSession(ctx context.Context, w drover.Workloads, s *connect.BidiStream[sessionOp, sessionEvent]) error {
	first, err := s.Receive()
	if err != nil {
		return err
	}
	if first.Open == nil {
		return drover.Errorf(drover.Invalid, "link: a session starts with open")
	}
	session, err := openSession(ctx, w, first.Open)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	events := &eventSender{stream: s}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer session.Close()
	defer cancel()
	if err := events.send(&sessionEvent{Opened: true}); err != nil {
		return err
	}
	done := make(chan error, 1)
	wg.Go(func() { done <- sendFrames(ctx, session, events) }) // ends with the receipt, or with ctx
	stdin := make(chan *sessionOp, 16)
	wg.Go(func() { // ends with ctx; apart from the other ops, as a program that does not read must still get signals
		for {
			select {
			case op := <-stdin:
				_ = events.send(performOp(ctx, session, op))
			case <-ctx.Done():
				return
			}
		}
	})
	ops := make(chan *sessionOp)
	go func() { // ends when the stream does; not waited for, as only this handler's return closes it
		defer close(ops)
		for {
			op, err := s.Receive()
			if err != nil {
				return
			}
			select {
			case ops <- op:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case err := <-done:
			cancel()
			return err
		case op, ok := <-ops:
			if !ok {
				return nil // the caller detached
			}
			if op.Resize == nil && op.Signal == "" {
				select {
				case stdin <- op:
				case <-ctx.Done():
				}
				continue
			}
			if err := events.send(performOp(ctx, session, op)); err != nil {
				return err
			}
		}
	}
}

func openSession(ctx context.Context, w drover.Workloads, o *sessionOpen) (drover.Session, error) {
	if o.Spec != nil {
		return w.StartExecution(ctx, o.AllocID, o.Task, *o.Spec)
	}
	return w.AttachExecution(ctx, o.AllocID, o.Task, o.Attach, o.From)
}

func sendFrames(ctx context.Context, session drover.Session, events *eventSender) error {
	for {
		f, err := session.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := events.send(&sessionEvent{Frame: &f}); err != nil {
			return err
		}
	}
}

func performOp(ctx context.Context, session drover.Session, op *sessionOp) *sessionEvent {
	var err error
	switch {
	case op.CloseStdin:
		err = session.CloseStdin(ctx)
	case op.Resize != nil:
		err = session.Resize(ctx, *op.Resize)
	case op.Signal != "":
		err = session.Signal(ctx, op.Signal)
	default:
		err = session.Write(ctx, op.Stdin)
	}
	reply := &sessionEvent{Ack: op.Seq}
	if err != nil {
		reply.Code, reply.Error = drover.CodeOf(err).String(), err.Error()
	}
	return reply
}

// eventSender serializes the two senders of a session's stream.
type eventSender struct {
	mu     sync.Mutex
	stream *connect.BidiStream[sessionOp, sessionEvent]
}

func (e *eventSender) send(ev *sessionEvent) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stream.Send(ev)
}
