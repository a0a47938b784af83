package exectest

import (
	"context"
	"io"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// kept is a session on an execution whose end was read, and whose output the runner keeps (execution.Spec.Keep).
type kept struct {
	execution.Session // panics
	frames            []execution.Frame
}

// Next implements execution.Session.
func (k *kept) Next(context.Context) (execution.Frame, error) {
	if len(k.frames) == 0 {
		return execution.Frame{}, io.EOF
	}
	f := k.frames[0]
	k.frames = k.frames[1:]
	return f, nil
}

// Close implements execution.Session.
func (*kept) Close() error { return nil }

// keeps returns what is kept of an execution that was forgotten otherwise; s.mu is held.
func (s *session) keeps() (execution.Session, error) {
	if s.spec.Keep == 0 || s.receipt == nil || s.dropped {
		return nil, drover.Errorf(drover.NotFound, "no such execution")
	}
	frames := append([]execution.Frame{{Started: true, Pid: 42}}, s.all...)
	return &kept{frames: append(frames, execution.Frame{Receipt: s.receipt})}, nil
}

// DropKept makes the node forget the output of executions whose end was read.
func (n *Node) DropKept() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.sessions {
		s.mu.Lock()
		s.dropped = true
		s.mu.Unlock()
	}
}
