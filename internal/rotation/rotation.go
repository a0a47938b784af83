package rotation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Write writes a file by the function, which is then there whole or not at all. Errors: those of the disk and of the function; what
// was at the path before is then as it was.
func Write(path string, write func(io.Writer) error) (err error) {
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, "."+filepath.Base(path)+"-*"+unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the error is the one before
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncFolder(folder)
}

// WriteFile is Write of data. The file is its owner's alone.
func WriteFile(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// unfinished is the end of the names of files that are being written.
const unfinished = ".unfinished"

// Series is files of one kind in a folder: their names begin and end alike, and a later one is greater as a text.
type Series struct {
	Folder, Prefix, Suffix string
	Keep                   int // files that stay; at least 1
}

// Add writes the next file, and then removes what is older than those that are kept, and what an earlier process did not finish.
// middle is what its name has between Prefix and Suffix. It makes the folder if it is not there. Errors: as of Write.
func (s Series) Add(middle string, write func(io.Writer) error) (path string, err error) {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(s.Folder, s.Prefix+middle+s.Suffix)
	if err := Write(path, write); err != nil {
		return "", err
	}
	return path, s.prune()
}

// List returns the names of the files, the oldest first. Errors: those of the disk; a folder that is not there is empty.
func (s Series) List() (names []string, err error) {
	entries, err := os.ReadDir(s.Folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && strings.HasPrefix(name, s.Prefix) && strings.HasSuffix(name, s.Suffix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// prune removes what is not kept.
func (s Series) prune() error {
	names, err := s.List()
	if err != nil {
		return err
	}
	old := names[:max(0, len(names)-max(1, s.Keep))]
	left := Series{Folder: s.Folder, Prefix: "." + s.Prefix, Suffix: unfinished} // nobody else writes this series
	torn, err := left.List()
	if err != nil {
		return err
	}
	for _, name := range append(slices.Clone(old), torn...) {
		if err := os.Remove(filepath.Join(s.Folder, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing an old file: %w", err)
		}
	}
	return nil
}

// SyncFolder makes a new name in the folder outlive a loss of power. Errors: those of the disk.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" { // folders cannot be synced there
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
