package sandbox

import (
	"fmt"
	"os"
	"syscall"
)

// namespaces makes the namespaces of a sandbox once, for a process that is killed at once. Only a trial shows whether something forbids
// them: a container's seccomp filter, a chroot, a security module, or a bound of 0.
func namespaces(binary string) error {
	p, err := os.StartProcess(binary, []string{binary}, &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
	}})
	if err != nil {
		return fmt.Errorf("user namespaces cannot be made (%w): is this a container or a chroot that forbids them?", err)
	}
	_ = p.Kill() // it may have ended by itself
	_, err = p.Wait()
	return err
}
