package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Several agents of a machine may have the same parent: those of users who start two, those of tests. Each holds a shared
// lock on its directory, and only the last removes it; a killed agent's lock goes with it.

// hold takes the lock, and makes the directory for that. It goes on until the Manager is closed, or collected.
func (m *Manager) hold() error {
	dir := m.lockDir()
	for {
		err := os.MkdirAll(dir, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) { // that one: it was there, and went before it was looked at
			return err
		}
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last agent went meanwhile, and took it along
		}
		if err != nil {
			return err
		}
		if flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil { // we are alone
			m.sweepSpares()
		}
		if err := flock(f, unix.LOCK_SH); err != nil { // it waits for one that is removing
			return errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
		}
		if sameDir(f, dir) {
			m.held = f
			return nil
		}
		_ = unlock(f)
	}
}

// lockDir is the parent in one of the trees, the last that is removed.
func (m *Manager) lockDir() string {
	if m.info.Version == V2 {
		return filepath.Join(m.info.mounts[""], m.parent)
	}
	return filepath.Join(m.trees(m.info.Controllers...)[0], m.parent)
}

// removeHeld ends the holding, and has the parents removed unless another agent holds them. After an error it goes on.
func (m *Manager) removeHeld(remove func() error) error {
	if m.held == nil { // it was closed before
		return nil
	}
	if flock(m.held, unix.LOCK_EX|unix.LOCK_NB) == nil {
		if err := remove(); err != nil {
			return errors.Join(err, flock(m.held, unix.LOCK_SH))
		}
	}
	err := unlock(m.held)
	m.held = nil
	return err
}

// unlock gives the lock up and closes. Close alone would leave it to a child that another goroutine has just forked, until
// that runs its own program.
func unlock(f *os.File) error {
	return errors.Join(flock(f, unix.LOCK_UN), f.Close())
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// sameDir reports whether the opened directory still has the name.
func sameDir(f *os.File, dir string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(dir)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
