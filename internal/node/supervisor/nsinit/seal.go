package nsinit

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seal gives up what the supervisor and everything after it must not have: of this thread, which the execution keeps.
func seal(c *Config) error {
	for _, r := range c.Rlimits {
		limit := unix.Rlimit{Cur: r.Soft, Max: r.Hard}
		if err := unix.Setrlimit(int(r.Resource), &limit); err != nil {
			return fmt.Errorf("setting resource limit %d: %w", r.Resource, err)
		}
	}
	if err := dropInherited(); err != nil {
		return err
	}
	for n := range uintptr(64) {
		if c.KeepCaps&(1<<n) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0); err != nil {
			if err == unix.EINVAL { // a bare errno; beyond the kernel's last capability
				break
			}
			return fmt.Errorf("dropping capability %d: %w", n, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if len(c.Seccomp) < 8 {
		return nil
	}
	program := unix.SockFprog{Len: uint16(len(c.Seccomp) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&c.Seccomp[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("installing the seccomp filter: %w", errno)
	}
	return nil
}

// becomeRoot takes the namespace's user 0, once the agent has mapped it. Of this thread only, which is the one that
// does everything.
func becomeRoot() error {
	if unix.Geteuid() == 0 {
		return nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("dropping groups: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); errno != 0 {
		return fmt.Errorf("becoming the sandbox's root group: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno != 0 {
		return fmt.Errorf("becoming the sandbox's root: %w", errno)
	}
	return nil
}

// dropInherited clears inheritable and ambient capabilities: they would pass by the bounding set.
func dropInherited() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing ambient capabilities: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("reading capabilities: %w", err)
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("clearing inheritable capabilities: %w", err)
	}
	return nil
}
