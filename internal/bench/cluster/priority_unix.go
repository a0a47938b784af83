//go:build unix

package cluster

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// niceness has servers go first: nodes have processors of their own elsewhere. What they cost is counted all the same.
const niceness = 10

// inGroup has a process that is about to start be in a group of its own.
func inGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// giveWay lets others go before all threads of the process that leads its group. If that fails, it only matters where processors are few.
func giveWay(c *exec.Cmd) { _ = unix.Setpriority(unix.PRIO_PGRP, c.Process.Pid, niceness) }
