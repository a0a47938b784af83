package sandbox

import (
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/options"
)

// keptCaps is what the sandbox's root keeps over its own namespaces: Docker's default without mknod, net_raw and
// audit_write.
var keptCaps = []string{
	"chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service", "sys_chroot",
	"setfcap",
}

// capNumbers are the capabilities that can be spoken of: those that mean something inside a sandbox.
var capNumbers = map[string]uint{
	"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "fsetid": 4, "kill": 5, "setgid": 6, "setuid": 7,
	"setpcap": 8, "linux_immutable": 9, "net_bind_service": 10, "net_broadcast": 11, "net_admin": 12, "net_raw": 13,
	"ipc_lock": 14, "ipc_owner": 15, "sys_chroot": 18, "sys_ptrace": 19, "sys_nice": 23, "sys_resource": 24, "mknod": 27,
	"lease": 28, "audit_write": 29, "setfcap": 31,
}

// caps returns the bounding set as a bit mask. Errors name the capability.
func (d *Driver) caps(c taskConfig) (uint64, error) {
	if c.task != nil {
		return c.task.Caps, nil
	}
	names := slices.Clone(keptCaps)
	for _, add := range c.capAdd {
		name := options.CapName(add)
		if _, known := capNumbers[name]; !known {
			return 0, drover.Errorf(drover.Invalid, "cap_add: unknown capability %q", add)
		}
		if !slices.Contains(keptCaps, name) && !options.HasCap(d.cfg.AllowCaps, name) {
			return 0, drover.Errorf(drover.Invalid, "cap_add: this node does not allow %q", add)
		}
		names = append(names, name)
	}
	var mask uint64
	for _, n := range names {
		mask |= 1 << capNumbers[n]
	}
	for _, drop := range c.capDrop {
		if strings.EqualFold(drop, "all") {
			// What the supervisor itself needs to start processes as other users stays.
			mask = neededCaps
			continue
		}
		n, known := capNumbers[options.CapName(drop)]
		if !known {
			return 0, drover.Errorf(drover.Invalid, "cap_drop: unknown capability %q", drop)
		}
		mask &^= 1 << n
	}
	return mask | neededCaps, nil
}

// neededCaps are what the supervisor needs to start, to signal and to end programs of other users: setgid, setuid, kill. A task of
// another driver may be without them, see Task.
const neededCaps = 1<<5 | 1<<6 | 1<<7

// capsOf is caps of a sandbox. One that writes to the machine's file systems may not give capabilities to files. There its root's files
// belong to the machine's root, so their capabilities would hold for whoever runs them outside.
func (d *Driver) capsOf(spec *driver.Spec, c taskConfig) (uint64, error) {
	mask, err := d.caps(c)
	if writesOutside(spec, c) {
		mask &^= 1 << capNumbers["setfcap"]
	}
	return mask, err
}

// supervisorCaps are what drover-init needs, whatever the task's are. With sys_admin it gives each program a cgroup
// namespace; that capability holds only for the sandbox's own namespaces, behind the same filter.
// With setpcap it withholds from programs what only it has.
//
// One cgroup namespace for all programs, with their groups below its root, would cost more. Only a process in a group without v2 limits
// to hand down could make it, and moving that process afterwards takes the kernel 10 ms.
const supervisorCaps = 1<<8 | 1<<21 | neededCaps
