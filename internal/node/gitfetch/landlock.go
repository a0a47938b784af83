package gitfetch

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is the version of the kernel's landlock; 0 is none.
func Landlock() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

const (
	landRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landRun  = landRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	// landFile is what of all may be said of something that is no folder.
	landFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// landWrite is all of a folder, but programs in it are not run.
	landWrite = landRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// handledBy is what each version of landlock knows of files.
func handledBy(version int) uint64 {
	all := uint64(unix.LANDLOCK_ACCESS_FS_REFER) - 1 // the first thirteen
	if version >= 2 {
		all |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		all |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// land is a set of rules. Paths that are not there are left out.
type land struct {
	version int
	fd      int
}

// newLand returns rules by which nothing is allowed; nil where the kernel has no landlock.
func newLand() (*land, error) {
	l := &land{version: Landlock()}
	if l.version == 0 {
		return nil, nil // its methods take nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledBy(l.version)}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if l.version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.Handled_access_net)
	}
	if l.version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("making landlock's rules: %w", errno)
	}
	l.fd = int(fd)
	return l, nil
}

// path allows the access below the path, or to it if it is a file.
func (l *land) path(path string, access uint64) error {
	if l == nil {
		return nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("allowing %s: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("allowing %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & handledBy(l.version), Parent_fd: int32(fd)}
	return l.add(unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&rule), "allowing "+path)
}

// port allows connections to the port, of whatever machine.
func (l *land) port(port uint16) error {
	if l == nil || l.version < 4 {
		return nil
	}
	rule := landlockNetPort{access: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port: uint64(port)}
	return l.add(landlockRuleNetPort, unsafe.Pointer(&rule), fmt.Sprintf("allowing port %d", port))
}

// landlockRuleNetPort is the kernel's LANDLOCK_RULE_NET_PORT.
const landlockRuleNetPort = 2

// landlockNetPort is the kernel's struct landlock_net_port_attr.
type landlockNetPort struct{ access, port uint64 }

func (l *land) add(kind uintptr, rule unsafe.Pointer, what string) error {
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(l.fd), kind, uintptr(rule), 0, 0, 0); errno != 0 {
		return fmt.Errorf("%s by landlock: %w", what, errno)
	}
	return nil
}

// enforce binds the calling thread, which must have no_new_privs, and what it executes.
func (l *land) enforce() error {
	if l == nil {
		return nil
	}
	defer unix.Close(l.fd)
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(l.fd), 0, 0); errno != 0 {
		return fmt.Errorf("enforcing landlock's rules: %w", errno)
	}
	return nil
}
