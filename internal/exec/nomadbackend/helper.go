package nomadbackend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/environment"
)

// failure is a helper command that ended with another code than 0.
type failure struct {
	code   int
	stderr string
}

// Error is what the command wrote to stderr; it may be empty.
func (f *failure) Error() string { return strings.TrimSpace(f.stderr) }

// What becomes of a helper's output on its way through a cluster: errCut after the command's end, which is known; after
// errBroken nobody knows whether it runs on.
var (
	errCut    = errors.New("reported a command's end before all of its output was here")
	errBroken = errors.New("broke the connection to a command")
)

// How often a helper is tried whose output was cut, and the pause before the second time.
const (
	tries     = 4
	firstWait = 50 * time.Millisecond
)

// again does something until it ends otherwise than by one of these errors, or was tried often enough.
func (b *Backend) again(ctx context.Context, do func() error, after ...error) error {
	for try := 1; ; try++ {
		err := do()
		if try == tries || !slices.ContainsFunc(after, func(e error) bool { return errors.Is(err, e) }) {
			return err
		}
		b.deps.Log.Info("a command on the Nomad cluster is repeated", "error", err, "try", try+1)
		if !clock.Sleep(ctx, b.deps.Clock, firstWait<<(try-1)) {
			return err
		}
	}
}

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
func (b *Backend) runWrapped(ctx context.Context, allocID string, spec execution.Spec, stdin io.Reader, stdout io.Writer) error {
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
		return drover.Errorf(drover.Unavailable, "the Nomad cluster %w", errCut)
	}
	if code != 0 {
		return &failure{code, complaint.String()}
	}
	return nil
}

// exec runs argv in the runner's task through Nomad's websocket, and blocks until it ends. The error wraps
// errBroken if the connection broke after it stood; then nobody knows whether the command runs on.
func (b *Backend) exec(
	ctx context.Context, allocID string, argv []string, stdin io.Reader, stdout, stderr io.Writer,
) (code int, err error) {
	// Nomad's client needs a reader, and closes stdin at its end.
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	code, err = b.client.Allocations().Exec(ctx, b.stub(allocID), environment.TaskName, false, argv, stdin, stdout, stderr, nil, b.query(ctx))
	if broken(err) {
		return code, drover.Errorf(drover.Unavailable, "the Nomad cluster %w (%s)", errBroken, err.Error())
	}
	if err != nil {
		return code, drover.Errorf(drover.Unavailable, "running a command on the Nomad cluster: %w", err)
	}
	return code, nil
}

// broken reports whether a connection that stood is no more: of most of these Nomad's client leaves the text only.
func broken(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	text := err.Error()
	return strings.Contains(text, io.ErrUnexpectedEOF.Error()) || strings.Contains(text, "websocket closed") ||
		strings.Contains(text, "websocket: close")
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
