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
	for n := range uintptr(64) {
		if c.KeepCaps&(1<<n) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0); err != nil {
			if err == unix.EINVAL { //nolint:errorlint // a bare errno; beyond the kernel's last capability
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
