package files

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/drover-project/drover"
)

// fileError gives a file system's error its code and a message with the path as it was asked for.
func fileError(p string, err error) error {
	if err == nil {
		return nil
	}
	var known *drover.Error
	if errors.As(err, &known) {
		return err
	}
	// What the file system says of the request is the caller's to mend; anything else, such as EIO, stays Internal.
	code := drover.Internal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return drover.Errorf(drover.NotFound, "no such file or directory: %q", p)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		code = drover.Forbidden
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = drover.Exhausted
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENXIO),
		errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EBUSY):
		code = drover.Invalid
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return drover.Errorf(code, "%w: %q", errno, p)
	}
	return drover.Errorf(code, "%w: %q", err, p)
}
