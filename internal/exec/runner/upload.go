package runner

import (
	"context"
	"io"

	"github.com/drover-project/drover/execution"
)

// Interrupter is a reader whose Read, also one under way, can be made to fail.
type Interrupter interface {
	io.Reader
	Interrupt()
}

// usedFiles are the files of a claimed runner: an upload ends with it, though nothing more comes from its sender.
type usedFiles struct {
	execution.Files
	use *Use
}

// Write serves execution.Files.
func (f usedFiles) Write(ctx context.Context, change execution.FileChange, r io.Reader) error {
	return f.upload(ctx, r, func(ctx context.Context) error { return f.Files.Write(ctx, change, r) })
}

// Extract serves execution.Files.
func (f usedFiles) Extract(ctx context.Context, req execution.FileRequest, tar io.Reader) error {
	return f.upload(ctx, tar, func(ctx context.Context) error { return f.Files.Extract(ctx, req, tar) })
}

// upload runs do until it ends or the runner is gone. Then it cancels do, and interrupts a Read under way, which no
// context would reach. It returns only when nobody uses r any more. An error after the runner's end becomes the
// reason of that end.
func (f usedFiles) upload(ctx context.Context, r io.Reader, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	stop := f.use.WhenGone(func() {
		defer close(over)
		cancel()
		if i, ok := r.(Interrupter); ok {
			i.Interrupt()
		}
	})
	err := do(ctx)
	if !stop() {
		<-over // r is its lender's again when we return
	}
	if gone := f.use.GoneReason(); err != nil && gone != nil {
		return gone
	}
	return err
}
