package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls answer EPERM. What is here is either useless in a sandbox, or a large piece of kernel that a guest could
// attack. Names that an architecture does not have are left out.
var deniedCalls = []string{
	// mounts and namespaces
	"mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr",
	"open_tree_attr", "unshare", "setns", "swapon", "swapoff", "quotactl", "quotactl_fd",
	// the kernel itself
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms",
	"query_module", "reboot", "bpf", "perf_event_open", "syslog", "acct", "lookup_dcookie", "nfsservctl", "uselib",
	"iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "kcmp", "_sysctl", "sysfs", "ustat",
	// large or racy interfaces
	"userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl",
	"open_by_handle_at", "name_to_handle_at", "move_pages", "migrate_pages", "mbind", "set_mempolicy", "get_mempolicy",
	"set_mempolicy_home_node", "process_madvise", "pidfd_getfd", "fanotify_init", "fanotify_mark", "vmsplice", "memfd_secret",
	"lsm_set_self_attr",
	// clocks and names of the machine
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime", "sethostname", "setdomainname", "vhangup",
}

// namespaceFlags of clone: none may be set.
var namespaceFlags = []uint64{
	unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID,
	unix.CLONE_NEWNET,
}

// families that a socket may have; everything else (AF_ALG, AF_VSOCK, AF_PACKET, …) is refused.
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// personalities that may be asked for: the default, asking what is set, and what 32-bit and old programs set.
var personalities = []uint64{0, 0xffffffff, 0x0008, 0x20000, 0x20008}

// maxCall is the newest system call that was looked at when the list was written (mseal, setxattrat and friends, and
// file_getattr); newer ones do not exist in a sandbox.
const maxCall = 469

// seccompPrograms are assembled once.
type seccompPrograms struct {
	once [2]sync.Once
	code [2][]byte
	err  [2]error
}

// program returns the filter as the kernel takes it. clone3 carries its flags where a filter cannot see them, so it
// answers ENOSYS and libraries take clone, unless the supervisor needs it to start processes in v2 groups (nested user
// namespaces are forbidden by other means too).
func (s *seccompPrograms) program(clone3 bool) ([]byte, error) {
	i := 0
	if clone3 {
		i = 1
	}
	s.once[i].Do(func() { s.code[i], s.err[i] = assemble(clone3) })
	return s.code[i], s.err[i]
}

func assemble(clone3 bool) ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("assembling the seccomp filter: %w", err)
	}
	eperm := seccomp.ActionErrno | seccomp.Action(unix.EPERM)
	enosys := seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)
	known := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := info.SyscallNames[n]; return !ok })
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: eperm, Names: known(deniedCalls...), NamesWithCondtions: conditions()},
	}}
	if !clone3 {
		policy.Syscalls = append(policy.Syscalls, seccomp.SyscallGroup{Action: enosys, Names: known("clone3")})
	}
	body, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assembling the seccomp filter: %w", err)
	}
	// The library lets calls of another architecture pass; they would be read with the wrong numbers.
	head := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(enosys)},
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: maxCall, SkipFalse: 1},
		bpf.RetConstant{Val: uint32(enosys)},
	}
	raw, err := bpf.Assemble(append(head, body...))
	if err != nil {
		return nil, fmt.Errorf("assembling the seccomp filter: %w", err)
	}
	code := make([]byte, 0, 8*len(raw))
	for _, r := range raw {
		code = binary.NativeEndian.AppendUint16(code, r.Op)
		code = append(code, r.Jt, r.Jf)
		code = binary.NativeEndian.AppendUint32(code, r.K)
	}
	return code, nil
}

// conditions refuse calls by their first argument. Inside one entry conditions are joined by and; entries by or.
func conditions() []seccomp.NameWithConditions {
	var list []seccomp.NameWithConditions
	for _, flag := range namespaceFlags {
		list = append(list, seccomp.NameWithConditions{Name: "clone", Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.BitsSet, Value: flag},
		}})
	}
	return append(list, noneOf("personality", personalities), noneOf("socket", families))
}

func noneOf(name string, allowed []uint64) seccomp.NameWithConditions {
	none := make(seccomp.ArgumentConditions, len(allowed))
	for i, v := range allowed {
		none[i] = seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: v}
	}
	return seccomp.NameWithConditions{Name: name, Conditions: none}
}
