package executor

import (
	"context"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// ValidateRequest is Validate for a request, which may have a command line instead of argv. Errors: Invalid.
func ValidateRequest(r execution.Request) error {
	switch {
	case r.Command != "" && len(r.Argv) > 0:
		return drover.Errorf(drover.Invalid, "command and argv: want one of them")
	case strings.ContainsRune(r.Command, 0):
		return drover.Errorf(drover.Invalid, "command: it has a NUL byte")
	case r.Command != "":
		r.Argv = []string{sh, "-c", r.Command}
	}
	if err := validateWebhook(r.Webhook); err != nil {
		return err
	}
	return Validate(r.Spec)
}

// CreateRequest starts what the request asks for, for those who attach later. Errors: as Start.
func (s *Executor) CreateRequest(ctx context.Context, runnerID string, r execution.Request) (execution.Execution, error) {
	x, err := s.request(ctx, runnerID, r)
	if err != nil {
		return execution.Execution{}, err
	}
	return x.Info(), nil
}

// OpenRequest starts what the request asks for and attaches to it. Errors: as Start; those of Attach for a repetition.
func (s *Executor) OpenRequest(ctx context.Context, runnerID string, r execution.Request) (execution.Session, error) {
	x, err := s.request(ctx, runnerID, r)
	if err != nil {
		return nil, err
	}
	return s.attach(ctx, x, execution.Offsets{})
}

// repeated returns the execution that an earlier request with the same key started; nil if there was none. Errors:
// Conflict if that was another request; Unavailable while the executions of an earlier process are looked for.
func (s *Executor) repeated(ctx context.Context, once execution.Once) (*Execution, error) {
	if once.ID == "" {
		return nil, nil
	}
	x, err := s.Execution(ctx, once.ID)
	if drover.CodeOf(err) == drover.NotFound {
		select {
		case <-s.looking():
			return nil, nil
		default:
			return nil, drover.Errorf(drover.Unavailable, "executions from before a restart are still looked for: try again")
		}
	}
	if err == nil && x.request != once.Request && x.request != "" {
		return nil, drover.Errorf(drover.Conflict, "the idempotency key was used for another request, which started execution %s", x.id)
	}
	return x, err
}

// request starts what the request asks for. All checks come before the shell is looked for, which asks the runner.
// Clients cannot choose the id, but one gives it by an idempotency key. Input is written by a goroutine, so that a
// program that reads slowly does not hold up the answer.
func (s *Executor) request(ctx context.Context, runnerID string, r execution.Request) (*Execution, error) {
	if err := ValidateRequest(r); err != nil {
		return nil, err
	}
	if err := s.checkWebhook(r.Webhook); err != nil {
		return nil, err
	}
	if x, err := s.repeated(ctx, r.Once); x != nil || err != nil {
		return x, err
	}
	if r.Command != "" {
		argv, err := s.Shell(ctx, runnerID, r.Command)
		if err != nil {
			return nil, err
		}
		r.Argv = argv
	}
	r.ID = r.Once.ID
	if len(r.Input) > 0 {
		r.Stdin = true
	}
	x, err := s.startFor(ctx, runnerID, r.Spec, terms{webhook: r.Webhook, request: r.Once.Request})
	if err != nil || len(r.Input) == 0 {
		return x, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.pumps.Go(func() { x.feed(r.Input) }) // ends with the execution
	}
	return x, nil
}

// feed writes all of stdin and closes it. A program that does not read it ends it by ending.
func (x *Execution) feed(input []byte) {
	ctx, cancel := context.WithCancel(x.base)
	defer cancel()
	go func() { // ends with the execution or with feed
		select {
		case <-x.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	if x.Write(ctx, input) == nil {
		_ = x.CloseStdin(ctx) // it may have ended
	}
}
