package allocdir

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover"
)

// clean makes a path of the API ("/alloc/logs", "", ".") one relative to the folder.
func clean(path string) (string, error) {
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return "", drover.Errorf(drover.Forbidden, "path %q: escapes the allocation's folder", path)
	}
	path = strings.TrimLeft(filepath.Clean("/"+path), "/")
	if path == "" {
		path = "."
	}
	if first, rest, _ := strings.Cut(path, "/"); first != "alloc" && rest != "" {
		if second, _, _ := strings.Cut(rest, "/"); second == "secrets" || second == "private" {
			return "", drover.Errorf(drover.Forbidden, "path %q: reading secret files is not allowed", path)
		}
	}
	return path, nil
}

// within does something with a path of the API inside the folder, which no path or link leads out of. Errors: Forbidden,
// NotFound, Invalid; do's, mapped.
func within[T any](d Dir, path string, do func(root *os.Root, path string) (T, error)) (out T, err error) {
	path, err = clean(path)
	if err != nil {
		return out, err
	}
	root, err := os.OpenRoot(d.Path())
	if err != nil {
		return out, mapError(d.allocID, err)
	}
	defer root.Close()
	if out, err = do(root, path); err != nil {
		return out, mapError(path, err)
	}
	return out, nil
}

// List returns the entries of a folder, by name.
func (d Dir) List(path string) ([]drover.AllocFileInfo, error) {
	return within(d, path, func(root *os.Root, path string) ([]drover.AllocFileInfo, error) {
		f, err := openFile(root, path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		infos, err := f.Readdir(-1)
		if err != nil {
			return nil, err
		}
		out := make([]drover.AllocFileInfo, 0, len(infos))
		for _, info := range infos {
			out = append(out, describe(info))
		}
		slices.SortFunc(out, func(a, b drover.AllocFileInfo) int { return strings.Compare(a.Name, b.Name) })
		return out, nil
	})
}

// Stat describes a file, with its content type.
func (d Dir) Stat(path string) (drover.AllocFileInfo, error) {
	return within(d, path, func(root *os.Root, path string) (drover.AllocFileInfo, error) {
		info, err := root.Stat(path)
		if err != nil {
			return drover.AllocFileInfo{}, err
		}
		out := describe(info)
		if info.Mode().IsRegular() {
			out.ContentType = contentType(root, path)
		}
		return out, nil
	})
}

// Read opens a regular file at an offset; limit 0 or less reads to the end.
func (d Dir) Read(path string, offset, limit int64) (io.ReadCloser, error) {
	f, err := d.openRegular(path)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		_ = f.Close()
		return nil, drover.Errorf(drover.Invalid, "offset: must not be negative")
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, mapError(path, err)
	}
	if limit <= 0 {
		return f, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, limit), f}, nil
}

// openRegular opens a file for reading, and refuses folders, pipes and devices. The check is made on the open file, so
// that the task cannot exchange it between check and use. Errors: those of within.
func (d Dir) openRegular(path string) (*os.File, error) {
	return within(d, path, func(root *os.Root, path string) (*os.File, error) {
		f, err := openFile(root, path)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = drover.Errorf(drover.Invalid, "file %q: is a directory or special file", path)
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		return f, nil
	})
}

// openFile does not block on a fifo that a task may have put in a file's place.
func openFile(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// describe is a file as Nomad's API shows it, without a content type.
func describe(info fs.FileInfo) drover.AllocFileInfo {
	return drover.AllocFileInfo{
		Name: info.Name(), IsDir: info.IsDir(), Size: info.Size(), FileMode: info.Mode().String(),
		ModTime: info.ModTime().Format(time.RFC3339Nano),
	}
}

// contentType guesses from the file's extension, else from its first 512 bytes, which is what the standard library looks
// at. It returns "" for a file that cannot be opened.
func contentType(root *os.Root, path string) string {
	if t := mime.TypeByExtension(filepath.Ext(path)); t != "" {
		return t
	}
	f, err := openFile(root, path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	return http.DetectContentType(head[:n])
}

// mapError gives an error of the file system the code that faces turn into a status. An error that has a code stays as
// it is.
func mapError(path string, err error) error {
	var coded *drover.Error
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return drover.Errorf(drover.NotFound, "no such file or directory: %s", path)
	case errors.Is(err, fs.ErrPermission):
		return drover.Errorf(drover.Forbidden, "reading %s: permission denied", path)
	// Package os has no exported error for a path that leaves an os.Root.
	case strings.Contains(err.Error(), "escapes from parent"):
		return drover.Errorf(drover.Forbidden, "path %q: escapes the allocation's folder", path)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EINVAL):
		return drover.Errorf(drover.Invalid, "reading %s: %w", path, err)
	}
	return drover.Errorf(drover.Internal, "reading %s: %w", path, err)
}
