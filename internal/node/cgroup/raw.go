package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The kernel's files never block, and they can be polled: package os would put each into the poller and take it out
// again, twice as many calls as it needs. A start and an end read a dozen of them.

const readSize = 4096 // all that we read but lists of processes is smaller

// readFile reads a file of a group.
func readFile(dir, file string) ([]byte, error) {
	fd, err := openRaw(filepath.Join(dir, file), unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, readSize)
	n := 0
	for {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR: // a bare errno
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: filepath.Join(dir, file), Err: err}
		case m == 0:
			return buf[:n], nil
		default:
			if n += m; n == len(buf) {
				buf = append(buf, make([]byte, len(buf))...)
			}
		}
	}
}

// openRaw opens a file without handing it to Go's poller, and tries again after a signal, as package os does.
func openRaw(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err == unix.EINTR { // a bare errno
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// OpenJoin opens the file that a new process writes itself into, in one of the group's directories. It is not in the
// poller: it is only handed on.
func (g *Group) OpenJoin(dir string) (*os.File, error) {
	path := filepath.Join(dir, g.JoinFile())
	fd, err := openRaw(path, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// OpenInit opens the files that a supervisor writes "0" into to go where AddInit would move it. The descriptors are the
// caller's, also after an error.
func (g *Group) OpenInit() (fds []int, err error) {
	for _, dir := range g.initDir {
		fd, err := openRaw(filepath.Join(dir, g.JoinFile()), unix.O_WRONLY)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// ownLinks are a directory's name and its ".".
const ownLinks = 2

// childless reports whether the kernel says that the directory has no directories in it.
func childless(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && st.Nlink == ownLinks && st.Ino != 0 && isCgroup(dir)
}

// isCgroup reports whether the directory is the kernel's. Tests use other file systems, which may count links
// differently.
func isCgroup(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.CGROUP_SUPER_MAGIC || st.Type == unix.CGROUP2_SUPER_MAGIC)
}
