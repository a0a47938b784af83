package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	toolPatience   = 10 * time.Second // for a program's answer
	toolOutput     = 4 << 20          // bytes of it that are read
	complaintBytes = 300              // of what a program that fails says
	toolAge        = time.Second      // how old an answer may be that is given again
)

// tool is a program that tells about devices. It runs once at a time, whoever asks: with a broken device such a program may hang in
// the kernel, where nothing ends it, and then there is one of it and no more.
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
	out, complaint := &bounded{most: toolOutput}, &bounded{most: complaintBytes}
	cmd := exec.CommandContext(ctx, t.argv[0], t.argv[1:]...) // from the configuration
	cmd.Stdout, cmd.Stderr = out, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case out.more:
		return nil, fmt.Errorf("%s: %w", t.argv[0], errTooMuch)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end within %v", t.argv[0], toolPatience)
	case err != nil:
		said := append(complaint.kept.Bytes(), out.kept.Bytes()...)
		return nil, fmt.Errorf("%s: %w: %s", t.argv[0], err, bytes.TrimSpace(said[:min(len(said), complaintBytes)]))
	}
	return out.kept.Bytes(), nil
}

// errTooMuch is of a program that does not stop.
var errTooMuch = errors.New("prints too much")

// bounded keeps the first bytes of what is written.
type bounded struct {
	kept bytes.Buffer
	most int
	more bool
}

// Write keeps what there is room for. Then it fails, which ends a program that does not stop.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.most-b.kept.Len())
	b.more = b.more || n < len(p)
	b.kept.Write(p[:n])
	if b.more {
		return n, errTooMuch
	}
	return n, nil
}
