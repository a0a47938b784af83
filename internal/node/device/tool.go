package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/program"
)

const (
	toolPatience = 10 * time.Second // for a program's answer
	toolOutput   = 4 << 20          // bytes of it that are read
	mostWords    = 300              // characters of what a program that fails says
	toolAge      = time.Second      // how old an answer may be that is given again
)

// tool is a program that tells about devices. It runs once at a time, whoever asks. With a broken device such a program may hang
// in the kernel, where nothing ends it, and then there is one of it and no more.
type tool struct {
	argv  []string
	clock clock.Clock

	mu     sync.Mutex // guards what follows
	last   *answer    // that is being waited for, or the last one
	begun  time.Time  // when it was asked for
	killed bool       // it had its time
}

// answer is what a program printed.
type answer struct {
	done chan struct{} // closed when out and err are set
	out  []byte
	err  error
}

// ask returns what the program prints, or has printed a moment ago.
func (t *tool) ask(ctx context.Context) ([]byte, error) {
	a, late := t.current(ctx)
	if late {
		return nil, fmt.Errorf("%s hangs: it was asked more than %v ago, and does not end", t.argv[0], toolPatience)
	}
	timer := t.clock.NewTimer(toolPatience + time.Second) // it is killed before
	defer timer.Stop()
	select {
	case <-a.done:
		return a.out, a.err
	case <-timer.C():
		t.mu.Lock()
		t.killed = t.last == a
		t.mu.Unlock()
		return nil, fmt.Errorf("%s did not end within %v", t.argv[0], toolPatience)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// current returns the answer that is on its way, or fresh; else the program is started. late says that it hangs.
func (t *tool) current(ctx context.Context) (a *answer, late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if t.last != nil {
		select {
		case <-t.last.done:
			if age := now.Sub(t.begun); age >= 0 && age < toolAge && t.last.err == nil {
				return t.last, false
			}
		default:
			return t.last, t.killed
		}
	}
	a = &answer{done: make(chan struct{})}
	t.last, t.begun, t.killed = a, now, false
	go func() { // ends with the program, whose time is bounded and not that of who asked first
		defer close(a.done)
		a.out, a.err = t.run(context.WithoutCancel(ctx))
	}()
	return a, false
}

// run runs the program to its end, with the processes that it starts.
func (t *tool) run(ctx context.Context) ([]byte, error) {
	ctx, cancel := t.clock.WithTimeout(ctx, toolPatience)
	defer cancel()
	call := program.Call{Path: t.argv[0], Args: t.argv[1:], Most: toolOutput} // from the configuration
	out, complaint, err := call.Run(ctx)
	switch {
	case errors.Is(err, program.ErrTooMuch):
		return nil, fmt.Errorf("%s: %w", t.argv[0], err)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end within %v", t.argv[0], toolPatience)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", t.argv[0], err, program.Plain(string(complaint)+" "+string(out), mostWords))
	}
	return out, nil
}
