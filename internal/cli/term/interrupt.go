package term

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/drover-project/drover"
)

// Interruptible returns a context that ends with the first of the signals; Main then returns 128 and its number, as shells
// have it. A second signal does what it does by default: it ends the process at once. stop lets all of them do that. Under nohup
// SIGHUP is left alone.
func Interruptible(parent context.Context, signals ...os.Signal) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	received := make(chan os.Signal, 1)
	for _, s := range signals {
		if s != syscall.SIGHUP || !signal.Ignored(s) {
			signal.Notify(received, s)
		}
	}
	go func() { // ends with ctx
		select {
		case s := <-received:
			if number, ok := s.(syscall.Signal); ok {
				cancel(interrupted(number))
			}
			signal.Stop(received) // another one ends the process at once
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		signal.Stop(received)
	}
}

// interrupted is the cause of a context that a signal ended.
type interrupted syscall.Signal

// Error names the signal.
func (i interrupted) Error() string { return syscall.Signal(i).String() }

// Signal is the signal.
func (i interrupted) Signal() os.Signal { return syscall.Signal(i) }

// Is makes it a cancellation.
func (i interrupted) Is(target error) bool { return target == context.Canceled }

// Leavable returns a context that ends when the user leaves, which is as good as Ctrl-C, or when our terminal is closed.
func Leavable(parent context.Context) (ctx context.Context, leave func()) {
	parent, stop := Interruptible(parent, syscall.SIGHUP)
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, func() {
		cancel(interrupted(syscall.SIGINT))
		stop()
	}
}

// InterruptCode is our exit code when ctx has ended before the command did.
func InterruptCode(ctx context.Context) int {
	number := syscall.SIGINT
	if i, ok := errors.AsType[interrupted](context.Cause(ctx)); ok {
		number = syscall.Signal(i)
	}
	return 128 + int(number)
}

// UnlessInterrupted returns what f does, or an error when ctx ends first. It is for what waits and cannot be interrupted,
// such as reading stdin; f is left behind then, and the process ends soon.
func UnlessInterrupted[T any](ctx context.Context, f func() (T, error)) (result T, err error) {
	done := make(chan struct{})
	var got T
	var failure error
	go func() { // ends with f, or the process
		defer close(done)
		got, failure = f()
	}()
	select {
	case <-done:
		return got, failure
	case <-ctx.Done():
		return result, drover.Errorf(drover.Canceled, "%w", context.Cause(ctx))
	}
}
