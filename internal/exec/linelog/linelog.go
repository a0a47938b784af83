package linelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/drover-project/drover"
)

// Log is an open file of lines. It is used by one goroutine at a time.
type Log struct {
	path string
	file *os.File // nil: nothing is kept
	size int64
}

// Open opens or makes the file; with "" nothing is kept. Errors: Internal.
func Open(path string) (*Log, error) {
	l := &Log{path: path}
	if path == "" {
		return l, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "opening %s: %w", path, err)
	}
	l.file = f
	return l, nil
}

// Kept reports whether lines are kept.
func (l *Log) Kept() bool { return l.file != nil }

// Read passes all lines, with their ends. A torn last line is dropped: what it was to say was never answered.
func (l *Log) Read(each func(line []byte)) error {
	if l.file == nil {
		return nil
	}
	l.size = 0
	r := bufio.NewReader(io.NewSectionReader(l.file, 0, 1<<62))
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			if err := l.file.Truncate(l.size); err != nil {
				return fmt.Errorf("cutting %d torn bytes off %s: %w", len(line), l.path, err)
			}
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", l.path, err)
		}
		l.size += int64(len(line))
		each(line)
	}
}

// Append adds one line, which ends with a newline. Errors: those of writing; then nothing was added.
func (l *Log) Append(line []byte) error {
	if l.file == nil {
		return nil
	}
	n, err := l.file.Write(line)
	if err != nil {
		if n > 0 {
			_ = l.file.Truncate(l.size) // a torn line is also dropped when it is read
		}
		return err
	}
	l.size += int64(n)
	return nil
}

// Size is the file's, in bytes.
func (l *Log) Size() int64 { return l.size }

// Replace writes the file anew, with these bytes only, in one step. Errors: then it is as before.
func (l *Log) Replace(all []byte) error {
	switch {
	case l.file == nil:
		return nil
	case len(all) == 0:
		if err := l.file.Truncate(0); err != nil {
			return err
		}
		l.size = 0
		return nil
	}
	next := l.path + ".new"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(all); err == nil {
		err = os.Rename(next, l.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_ = l.file.Close() // only ever written with Write
	l.file, l.size = f, int64(len(all))
	return nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
