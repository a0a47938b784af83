package appendlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// File is an open file of records. It is used by one goroutine at a time.
type File struct {
	path   string
	format Format
	file   *os.File // nil: nothing is kept
	size   int64
}

// Span is where a record is in its file, in bytes.
type Span struct{ At, Size int64 }

// Open opens or makes the file, of mode 0600; with "" nothing is kept, and all calls succeed. Errors: of opening.
func Open(path string, format Format) (*File, error) {
	f := &File{path: path, format: format}
	if path == "" {
		return f, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", path, err), file.Close())
	}
	f.file, f.size = file, info.Size()
	return f, nil
}

// Kept reports whether records are kept.
func (f *File) Kept() bool { return f.file != nil }

// Size is the file's, in bytes.
func (f *File) Size() int64 { return f.size }

// Read passes all records, the oldest first; each may keep the data. From the first record that is torn on, the file is
// cut off. Errors: of reading and cutting.
func (f *File) Read(each func(data []byte, at Span)) error {
	if f.file == nil {
		return nil
	}
	r := bufio.NewReader(io.NewSectionReader(f.file, 0, 1<<62))
	for f.size = 0; ; {
		data, size, err := f.format(r)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, ErrTorn):
			if err := f.file.Truncate(f.size); err != nil {
				return fmt.Errorf("cutting a torn record off %s: %w", f.path, err)
			}
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", f.path, err)
		}
		each(data, Span{f.size, size})
		f.size += size
	}
}

// ReadAt fills p with the file's bytes from that place on. Errors: of reading; io.EOF if there are not as many.
func (f *File) ReadAt(p []byte, at int64) error {
	if f.file == nil {
		return io.EOF
	}
	if _, err := f.file.ReadAt(p, at); err != nil {
		return fmt.Errorf("reading %s: %w", f.path, err)
	}
	return nil
}

// Append adds one or more records in the file's format. Errors: those of writing; then nothing was added.
func (f *File) Append(records []byte) error {
	if f.file == nil {
		return nil
	}
	if _, err := f.file.WriteAt(records, f.size); err != nil {
		_ = f.file.Truncate(f.size) // what is torn is also overwritten by the next record, or dropped when it is read
		return err
	}
	f.size += int64(len(records))
	return nil
}

// Replace writes the file anew, with these records only, in one step. Errors: then it is as before.
func (f *File) Replace(records []byte) error {
	switch {
	case f.file == nil:
		return nil
	case len(records) == 0:
		if err := f.file.Truncate(0); err != nil {
			return err
		}
		f.size = 0
		return nil
	}
	next, err := os.OpenFile(f.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = next.Write(records); err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	f.begin(next, int64(len(records)))
	return nil
}

// Rotate gives the file another name, in place of what has it, and begins an empty one. Errors: then it is as before.
func (f *File) Rotate(name string) error {
	if f.file == nil {
		return nil
	}
	if err := os.Rename(f.path, name); err != nil {
		return err
	}
	next, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return errors.Join(err, os.Rename(name, f.path))
	}
	f.begin(next, 0)
	return nil
}

// begin goes on with another file.
func (f *File) begin(next *os.File, size int64) {
	_ = f.file.Close() // all writes to it were answered
	f.file, f.size = next, size
}

// Close closes the file: what is appended later fails. Errors: of closing.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
