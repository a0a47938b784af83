package sandbox

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls answer EPERM. What is here is either useless in a sandbox, or a large piece of kernel that a guest could
// attack. Names that an architecture does not have are left out.
var deniedCalls = []string{
	// mounts and namespaces
	"mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr",
	"open_tree_attr", "setns", "swapon", "swapoff", "quotactl", "quotactl_fd",
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
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// families that a socket may have, beside AF_NETLINK for routes; everything else (AF_ALG, AF_VSOCK, AF_PACKET, …) is refused.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

// personalities that may be asked for: the default, asking what is set, and what 32-bit and old programs set.
var personalities = []uint32{0, 0xffffffff, 0x0008, 0x20000, 0x20008}

// maxCall is the newest system call that was looked at when the list was written (mseal, setxattrat and friends, and
// file_getattr); newer ones do not exist in a sandbox.
const maxCall = 469

// filter is a kind of program.
type filter struct {
	// clone3 lets it pass. It carries its flags where a program cannot see them, so else it answers ENOSYS and
	// libraries take clone; but the supervisor needs it to start processes in v2 groups. (Nested user namespaces are
	// forbidden by other means too.)
	clone3 bool
	// plainModes refuses setuid and setgid bits: for sandboxes that write to the machine's file systems, where the
	// owner of what their root makes is the machine's root.
	plainModes bool
}

// seccompPrograms are assembled once.
type seccompPrograms struct {
	mu   sync.Mutex
	code map[filter][]byte
}

// program returns the filter as the kernel takes it.
func (s *seccompPrograms) program(f filter) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if code := s.code[f]; code != nil {
		return code, nil
	}
	code, err := assemble(f)
	if err != nil {
		return nil, err
	}
	if s.code == nil {
		s.code = map[filter][]byte{}
	}
	s.code[f] = code
	return code, nil
}

// assemble writes the program. The library's own assembler is not used for two reasons. Where the conditions of a call fail, it goes on
// with an argument in place of the call's number. And it lets calls of another architecture pass.
func assemble(f filter) ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("assembling the seccomp filter: %w", err)
	}
	raw, err := bpf.Assemble(rules(info.SyscallNames, f).program(uint32(info.ID)))
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

// rules are what is said of each call.
func rules(numbers map[string]int, f filter) *assembler {
	a := &assembler{numbers: numbers, cases: map[uint32][]bpf.Instruction{}}
	if !f.clone3 {
		a.deny(noCall, "clone3")
	}
	if f.plainModes {
		a.deny(noCall, "openat2") // its mode cannot be seen
		a.plainModes()
	}
	// The supervisor makes one for each program. To others the kernel refuses it, as they lack the capability.
	a.unless("unshare", notPermitted, []uint32{unix.CLONE_NEWCGROUP})
	a.deny(notPermitted, deniedCalls...)
	a.forbid("clone", anyBit{0, namespaceFlags})
	a.sockets(families)
	a.unless("personality", notPermitted, personalities)
	return a
}
