package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/flock"
)

// Several agents of a machine may have the same parent: those of users who start two, those of tests. Each holds a shared
// lock on its directory, and only the last removes it; a killed agent's lock goes with it.

// hold takes the lock, and makes the directory for that. It goes on until the Groups are closed, or collected.
func (m *Groups) hold() error {
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
		if flock.TryExclusive(f) { // we are alone
			m.sweepSpares()
		}
		if err := flock.Shared(f); err != nil { // it waits for one that is removing
			return errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
		}
		if sameDir(f, dir) {
			m.held = f
			return nil
		}
		_ = flock.Close(f)
	}
}

// lockDir is the parent in one of the trees, the last that is removed.
func (m *Groups) lockDir() string {
	if m.info.Version == V2 {
		return filepath.Join(m.info.mounts[""], m.parent)
	}
	return filepath.Join(m.trees(m.info.Controllers...)[0], m.parent)
}

// removeHeld ends the holding, and has the parents removed unless another agent holds them. After an error it goes on.
func (m *Groups) removeHeld(remove func() error) error {
	if m.held == nil { // it was closed before
		return nil
	}
	if flock.TryExclusive(m.held) {
		if err := remove(); err != nil {
			return errors.Join(err, flock.Shared(m.held))
		}
	}
	err := flock.Close(m.held)
	m.held = nil
	return err
}

// sameDir reports whether the opened directory still has the name.
func sameDir(f *os.File, dir string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(dir)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
