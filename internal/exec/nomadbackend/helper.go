package nomadbackend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"drover"
	"drover/internal/exec/environment"
)

// failure is a helper command that ended with another code than 0.
type failure struct {
	code   int
	stderr string
}

func (f *failure) Error() string { return strings.TrimSpace(f.stderr) }

// run runs a helper command to its end. Errors: *failure, Unavailable.
func (b *Backend) run(ctx context.Context, allocID string, argv []string) error {
	var complaint bytes.Buffer
	code, err := b.exec(ctx, allocID, argv, nil, io.Discard, &bounded{&complaint})
	if err == nil && code != 0 {
		err = &failure{code, complaint.String()}
	}
	return err
}

// runWrapped runs a helper command, wrapped, until both of its streams came to their trailers: all of its output was here
// then, and its lingering is not waited for. Errors: *failure; Unavailable, also when output is missing.
func (b *Backend) runWrapped(ctx context.Context, allocID string, spec drover.ExecutionSpec, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if stdout == nil {
		stdout = io.Discard
	}
	var complaint bytes.Buffer
	var ended atomic.Int32
	over := func() {
		if ended.Add(1) == 2 {
			cancel(errEnded)
		}
	}
	out := &clipped{w: stdout, cut: newCutter(spec.ID), over: over}
	code, err := b.exec(ctx, allocID, wrap(spec), stdin, out, &clipped{w: &bounded{&complaint}, cut: newCutter(spec.ID), over: over})
	switch {
	case errors.Is(context.Cause(ctx), errEnded):
		code = out.cut.code
	case err != nil:
		return err
	case code == 0:
		return drover.Errorf(drover.Unavailable, "the Nomad cluster reported a command's end before all of its output was here")
	}
	if code != 0 {
		return &failure{code, complaint.String()}
	}
	return nil
}

func (b *Backend) exec(ctx context.Context, allocID string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (code int, err error) {
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	code, err = b.client.Allocations().Exec(ctx, b.stub(allocID), environment.TaskName, false, argv, stdin, stdout, stderr, nil, b.query(ctx))
	if err != nil {
		return code, drover.Errorf(drover.Unavailable, "running a command on the Nomad cluster: %w", err)
	}
	return code, nil
}

// clipped passes a stream on without its trailer. Nomad's client writes both streams from one goroutine.
type clipped struct {
	w    io.Writer
	cut  *cutter
	over func() // called once, when all was written
}

// Write implements io.Writer.
func (c *clipped) Write(p []byte) (int, error) {
	if c.cut.ended {
		return len(p), nil
	}
	if _, err := c.w.Write(c.cut.take(p)); err != nil {
		return 0, err
	}
	if c.cut.ended {
		c.over()
	}
	return len(p), nil
}

// bounded keeps the first bytes of what is written.
type bounded struct{ buf *bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.buf.Write(p[:min(len(p), max(0, 4<<10-b.buf.Len()))])
	return len(p), nil
}
