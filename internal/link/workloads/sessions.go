package workloads

import (
	"context"
	"errors"
	"io"
	"sync"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
)

// sessions knows the node's open sessions by the callers' ids.
type sessions struct {
	workloads exchange.Workloads
	broken    func(context.Context) bool // the connection, over which something was asked for

	mu   sync.Mutex
	open map[string]execution.Session // guarded by mu
}

// serve opens a session and sends its frames; it is closed when the caller closes it. By closing it the caller also says that
// it has stored the receipt.
func (s *sessions) serve(ctx context.Context, o *sessionOpen, stream *connect.ServerStream[sessionEvent]) error {
	session, err := openSession(ctx, s.workloads, o)
	if err != nil {
		return err
	}
	defer s.leave(ctx, session)
	s.mu.Lock()
	s.open[o.SessionID] = session
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, o.SessionID)
		s.mu.Unlock()
	}()
	if err := stream.Send(&sessionEvent{}); err != nil {
		return err
	}
	for {
		f, err := session.Next(ctx)
		if errors.Is(err, io.EOF) {
			<-ctx.Done()
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&sessionEvent{Frame: &f}); err != nil {
			return err
		}
	}
}

// leave closes a session. A caller whose connection broke did not close it: it may come back, to this execution or its receipt.
func (s *sessions) leave(ctx context.Context, session execution.Session) {
	if l, ok := session.(interface{ Lost() }); ok && s.broken(ctx) {
		l.Lost()
		return
	}
	_ = session.Close() // detaching cannot fail
}

// openSession starts the execution that the request describes, or attaches to the one that it names.
func openSession(ctx context.Context, w exchange.Workloads, o *sessionOpen) (execution.Session, error) {
	if o.Spec != nil {
		return w.StartExecution(ctx, o.AllocID, o.Task, *o.Spec)
	}
	return w.AttachExecution(ctx, o.AllocID, o.Task, o.Attach, o.From)
}

// perform does one op on an open session. Errors: Gone when it is not open.
func (s *sessions) perform(ctx context.Context, op *sessionOp) error {
	s.mu.Lock()
	session, ok := s.open[op.SessionID]
	s.mu.Unlock()
	switch {
	case !ok:
		return drover.Errorf(drover.Gone, "link: the execution's session ended")
	case op.Untaken:
		execution.LetGo(session)
		return nil
	case op.CloseStdin:
		return session.CloseStdin(ctx)
	case op.Resize != nil:
		return session.Resize(ctx, *op.Resize)
	case op.Signal != "":
		return session.Signal(ctx, op.Signal)
	}
	return session.Write(ctx, op.Stdin)
}
