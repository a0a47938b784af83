package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lifemark is the path of a file that is there while the agent runs: one that finds it when it starts knows that the
// last one did not end by itself.
func (a *Agent) lifemark() string { return filepath.Join(a.cfg.StateDir, "running") }

// mark makes the file, durably. died says that it was there.
func (a *Agent) mark() (died bool, err error) {
	if a.cfg.InMemory {
		return false, nil
	}
	path := a.lifemark()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, fmt.Errorf("marking that the agent runs: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	if err == nil {
		err = errors.Join(f.Close(), syncDir(filepath.Dir(path)))
	}
	if err != nil {
		return false, fmt.Errorf("marking that the agent runs: %w", err)
	}
	return false, nil
}

// unmark removes it. If the machine loses power right after that, a clean end may be taken for a death: once.
func (a *Agent) unmark() error {
	if a.cfg.InMemory {
		return nil
	}
	return os.Remove(a.lifemark())
}

// syncDir waits until the folder's entries are on the disk: syncing a file does not include its name.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
