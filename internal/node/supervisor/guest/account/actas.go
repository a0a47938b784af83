package account

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// As does file work with the rights of the guest's default user, or, privileged, of its root. The rights are those of
// a thread: fn must do its work on the calling goroutine.
func (d *Database) As(boot *wire.Boot, privileged bool, fn func() error) error {
	if privileged || os.Geteuid() != 0 || boot.UID == 0 {
		return fn()
	}
	runtime.LockOSThread()
	groups := boot.Groups
	if len(groups) == 0 {
		groups = []uint32{boot.GID}
	}
	if err := d.takeRights(int(boot.UID), int(boot.GID), groups); err != nil {
		return err // the thread stays locked and ends with its goroutine
	}
	err := fn()
	if back := d.takeRights(0, 0, []uint32{0}); back == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// takeRights changes the rights of the calling thread only: the raw system calls, unlike package syscall's functions, leave the other
// threads.
func (d *Database) takeRights(uid, gid int, groups []uint32) error {
	if uid == 0 { // first, for the right to change the groups
		_ = setFileUser(uid)
	}
	if !d.keepGroups {
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

// FileUser is the user whose rights the calling thread has for files: in the work of As, that of the guest.
func FileUser() int {
	if uid, err := unix.SetfsuidRetUid(-1); err == nil && uid != 0 {
		return uid
	}
	return unix.Geteuid()
}

// keepID is -1, by which setresuid(2) and setresgid(2) leave an id as it is.
const keepID = ^uintptr(0)

// setFileUser changes the thread's file user; where the kernel has none, as gVisor's, its effective one.
func setFileUser(uid int) bool {
	_ = unix.Setfsuid(uid)
	if now, _ := unix.SetfsuidRetUid(-1); now == uid {
		return true
	}
	return SetEffective(uid)
}

// SetEffective changes the effective user of the calling thread, which the caller has locked; false when it may not.
func SetEffective(uid int) bool {
	_, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, keepID, uintptr(uid), keepID)
	return e == 0
}
