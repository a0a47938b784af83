package server

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// as does file work with the rights of the guest's default user, or, privileged, of its root. The rights are those of
// a thread: fn must do its work on the calling goroutine.
func (s *Server) as(privileged bool, fn func() error) error {
	boot := s.boot()
	if privileged || os.Geteuid() != 0 || boot.UID == 0 {
		return fn()
	}
	runtime.LockOSThread()
	groups := boot.Groups
	if len(groups) == 0 {
		groups = []uint32{boot.GID}
	}
	if err := s.takeRights(int(boot.UID), int(boot.GID), groups); err != nil {
		return err // the thread stays locked and ends with its goroutine
	}
	err := fn()
	if back := s.takeRights(0, 0, []uint32{0}); back == nil {
		runtime.UnlockOSThread()
	}
	return err
}

func (s *Server) takeRights(uid, gid int, groups []uint32) error {
	if uid == 0 { // first, for the right to change the groups
		_ = setFileUser(uid)
	}
	if !s.keepGroups {
		_, _, e := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
		if e != 0 {
			return drover.Errorf(drover.Internal, "changing groups: %w", e)
		}
	}
	if _, err := unix.SetfsgidRetGid(gid); err != nil {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETRESGID, keepID, uintptr(gid), keepID) // setFileUser tells
	}
	if !setFileUser(uid) {
		return drover.Errorf(drover.Internal, "the file user could not be changed to %d", uid)
	}
	return nil
}

const keepID = ^uintptr(0)

// setFileUser changes the thread's file user; where the kernel has none, as gVisor's, its effective one.
func setFileUser(uid int) bool {
	_ = unix.Setfsuid(uid)
	if now, _ := unix.SetfsuidRetUid(-1); now == uid {
		return true
	}
	return setEffective(uid)
}

// setEffective changes the thread's effective user.
func setEffective(uid int) bool {
	_, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, keepID, uintptr(uid), keepID)
	return e == 0
}

// absolute resolves a path of a request: relative ones start at the working directory. Errors: Invalid.
func (s *Server) absolute(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", drover.Errorf(drover.Invalid, "path %q has a zero byte", p)
	}
	base := s.boot().WorkDir
	if base == "" {
		base = "/"
	}
	if path.IsAbs(p) {
		return path.Clean(p), nil
	}
	return path.Join(base, p), nil
}

// asDirectory keeps what the end of a path that was asked for says: that it is a directory's. The kernel then refuses
// anything else (ENOTDIR), as it does for every program.
func asDirectory(asked, p string) string {
	if namesDirectory(asked) {
		return p + "/"
	}
	return p
}

func namesDirectory(asked string) bool {
	return strings.HasSuffix(asked, "/") || strings.HasSuffix(asked, "/.")
}

// fileError gives a file system's error its code and a message with the path as it was asked for.
func fileError(p string, err error) error {
	if err == nil {
		return nil
	}
	var known *drover.Error
	if errors.As(err, &known) {
		return err
	}
	code := drover.Internal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return drover.Errorf(drover.NotFound, "no such file or directory: %q", p)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		code = drover.Forbidden
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = drover.Exhausted
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENXIO), errors.Is(err, fs.ErrExist), errors.Is(err, syscall.EBUSY):
		code = drover.Invalid
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return drover.Errorf(code, "%w: %q", errno, p)
	}
	return drover.Errorf(code, "%w: %q", err, p)
}
