package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/flock"
)

const (
	wait  = time.Second          // for whoever has the lock or the port
	limit = 30 * time.Second     // for a lock whose owner is seen to be dead
	look  = 5 * time.Millisecond // between two tries
)

// Folder is a data folder that this process alone uses until it closes it.
type Folder struct {
	path      string // absolute
	lock      *os.File
	temporary bool
}

// TakeFolder makes the folder if needed, and locks it. Without a path it is a temporary one, which Close removes.
// Errors: Conflict when another agent has it, Invalid when it cannot be made.
func TakeFolder(ctx context.Context, path string, c clock.Clock) (*Folder, error) {
	f := &Folder{path: path, temporary: path == ""}
	if f.temporary {
		dir, err := os.MkdirTemp("", "drover-dev-")
		if err != nil {
			return nil, fmt.Errorf("making a temporary data folder: %w", err)
		}
		f.path = dir
	}
	if err := f.take(ctx, c); err != nil {
		_ = f.Close() // the first error says more
		return nil, err
	}
	return f, nil
}

func (f *Folder) take(ctx context.Context, c clock.Clock) error {
	abs, err := filepath.Abs(f.path)
	if err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	f.path = abs
	if err := os.MkdirAll(abs, 0o711); err != nil { // the unprivileged ids of sandboxes must pass through
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if err := os.Chmod(abs, 0o711); err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	f.lock, err = os.OpenFile(filepath.Join(abs, "agent.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return drover.Errorf(drover.Invalid, "data_dir: %w", err)
	}
	if !acquire(ctx, f.lock, c) {
		return drover.Errorf(drover.Conflict, "data_dir: %s is in use by another agent: stop it, or give this one its own data_dir", abs)
	}
	return nil
}

// Path is where the folder is, absolute.
func (f *Folder) Path() string { return f.path }

// Close gives the folder back. A temporary one is removed. Errors: of the removal.
func (f *Folder) Close() error {
	if f.lock != nil {
		_ = flock.Close(f.lock)
	}
	if !f.temporary {
		return nil
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("removing the temporary data folder: %w", err)
	}
	return nil
}

// acquire takes the lock and leaves this process's number in its file: whoever comes after a kill reads there that the
// owner is dead, and waits longer.
func acquire(ctx context.Context, lock *os.File, c clock.Clock) bool {
	begin := c.Now()
	for !flock.TryExclusive(lock) {
		waited := c.Now().Sub(begin)
		if waited > limit || waited > wait && !ownerIsDead(lock) || !clock.Sleep(ctx, c, look) {
			return false
		}
	}
	_ = lock.Truncate(0) // without its number, who comes after a kill waits for a second only
	_, _ = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return true
}

// ownerIsDead reports whether the lock's file names a process that no longer exists.
func ownerIsDead(lock *os.File) bool {
	text := make([]byte, 20)
	n, _ := lock.ReadAt(text, 0)
	pid, err := strconv.Atoi(string(text[:n]))
	return err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
