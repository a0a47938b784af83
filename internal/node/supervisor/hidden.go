package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// hiddenPrograms are drover-init without the path of its file, by that path, each opened once. A guest can read the path of the program
// that its processes run, and the file's path would show the agent's data folder.
var hiddenPrograms sync.Map // they are the process's: path to func() (*os.File, error)

// hidden returns the program, which the caller does not close.
func hidden(path string) (*os.File, error) {
	program, _ := hiddenPrograms.LoadOrStore(path, sync.OnceValues(func() (*os.File, error) { return hide(path) }))
	return program.(func() (*os.File, error))() // nothing else is stored
}

// hide opens the file in a mount that is attached nowhere, from which no path leads up. Who may not make one, or finds that nothing can be
// executed in it, makes a copy in memory. That has small pages only, which make a start cost a tenth more.
func hide(path string) (*os.File, error) {
	f, err := openApart(path)
	if err != nil {
		return seal(path)
	}
	return f, nil
}

// openApart opens a file through a read-only clone of its folder's mount.
func openApart(path string) (*os.File, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, filepath.Dir(path), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(tree, &st); err != nil {
		return nil, err
	}
	if st.Flags&unix.ST_NOEXEC != 0 {
		return nil, unix.EACCES
	}
	fd, err := unix.Openat(tree, filepath.Base(path), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "drover-init"), nil
}

// seal copies the program into memory and seals the copy. Where the machine forbids such programs, it returns the file itself.
func seal(path string) (*os.File, error) {
	in, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("drover-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err != nil { // before Linux 6.3 there is no MFD_EXEC, and it may always be executed
		fd, err = unix.MemfdCreate("drover-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return in, nil // vm.memfd_noexec forbids it: then it is the file itself
	}
	defer in.Close()
	out := os.NewFile(uintptr(fd), "drover-init")
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("copying the supervisor into memory: %w", err)
	}
	// A file that is open for writing cannot be executed.
	program, err := open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, fmt.Errorf("sealing the supervisor's copy: %w", err)
	}
	return program, nil
}
