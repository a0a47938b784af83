package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// sealedPrograms are copies of drover-init in memory that nobody can change, by the path of the file, each made once. A guest can read
// the path of the program that its processes run, and the file's path would show the agent's data folder.
var sealedPrograms sync.Map // they are the process's: path to func() (*os.File, error)

// sealed returns the copy, which the caller does not close.
func sealed(path string) (*os.File, error) {
	copied, _ := sealedPrograms.LoadOrStore(path, sync.OnceValues(func() (*os.File, error) { return seal(path) }))
	return copied.(func() (*os.File, error))() // nothing else is stored
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
