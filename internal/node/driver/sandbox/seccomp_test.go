package sandbox

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// answer runs the program as the kernel would. The interpreter reads big-endian, so the data is written so.
func answer(t *testing.T, code []byte, archID uint32, number uint32, args ...uint64) uint32 {
	t.Helper()
	var raw []bpf.RawInstruction
	for i := 0; i < len(code); i += 8 {
		raw = append(raw, bpf.RawInstruction{
			Op: binary.NativeEndian.Uint16(code[i:]), Jt: code[i+2], Jf: code[i+3], K: binary.NativeEndian.Uint32(code[i+4:]),
		})
	}
	program, all := bpf.Disassemble(raw)
	require.True(t, all)
	vm, err := bpf.NewVM(program)
	require.NoError(t, err)
	n, err := vm.Run(callData(archID, number, args...))
	require.NoError(t, err)
	return uint32(n)
}

// callData is struct seccomp_data, in the interpreter's order of bytes.
func callData(archID uint32, number uint32, args ...uint64) []byte {
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[0:], number)
	binary.BigEndian.PutUint32(data[4:], archID)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(a>>32))
	}
	return data
}

func TestFilter(t *testing.T) {
	t.Parallel()
	info, err := arch.GetInfo("")
	require.NoError(t, err)
	id := uint32(info.ID)
	number := func(name string) uint32 { return uint32(info.SyscallNames[name]) }
	var programs seccompPrograms
	normal, err := programs.program(filter{})
	require.NoError(t, err)
	v2, err := programs.program(filter{clone3: true})
	require.NoError(t, err)
	plain, err := programs.program(filter{plainModes: true})
	require.NoError(t, err)
	require.Less(t, len(plain)/8, 4096, "the kernel takes no more")
	const allow, noProtocol = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	for _, c := range []struct {
		name string
		code []byte
		want uint32
		args []uint64
	}{
		{"read", normal, allow, nil},
		{"ptrace", normal, allow, nil},
		{"mount", normal, notPermitted, nil},
		{"bpf", normal, notPermitted, nil},
		{"userfaultfd", normal, notPermitted, nil},
		{"io_uring_setup", normal, notPermitted, nil},
		{"clone3", normal, noCall, nil},
		{"clone3", v2, allow, nil},
		{"unshare", normal, allow, []uint64{unix.CLONE_NEWCGROUP}},
		{"unshare", normal, notPermitted, []uint64{unix.CLONE_NEWCGROUP | unix.CLONE_NEWUSER}},
		{"unshare", normal, notPermitted, []uint64{1<<32 | unix.CLONE_NEWCGROUP}},
		{"unshare", normal, notPermitted, []uint64{0}},
		{"openat2", normal, allow, nil},
		{"openat2", plain, noCall, nil},
		{"clone", normal, allow, []uint64{unix.CLONE_VM | unix.CLONE_VFORK | 17}},
		{"clone", normal, notPermitted, []uint64{unix.CLONE_NEWUSER | 17}},
		{"clone", normal, notPermitted, []uint64{1<<40 | unix.CLONE_NEWNET | 17}},
		{"socket", normal, allow, []uint64{unix.AF_INET}},
		{"socket", normal, allow, []uint64{unix.AF_INET6, 2, 17}},
		{"socket", normal, allow, []uint64{unix.AF_UNIX, 1, 0}},
		{"socket", normal, allow, []uint64{unix.AF_NETLINK, 3, unix.NETLINK_ROUTE}},
		{"socket", normal, noProtocol, []uint64{unix.AF_NETLINK, 3, unix.NETLINK_SOCK_DIAG}},
		{"socket", normal, noProtocol, []uint64{unix.AF_NETLINK, 3, 1<<32 | unix.NETLINK_GENERIC}},
		{"socket", normal, allow, []uint64{unix.AF_NETLINK, 3, 1<<32 | unix.NETLINK_ROUTE}}, // the kernel takes the low half
		{"socket", normal, notPermitted, []uint64{unix.AF_ALG}},
		{"socket", normal, notPermitted, []uint64{1<<32 | unix.AF_INET}},
		{"personality", normal, allow, []uint64{0xffffffff}},
		{"personality", normal, notPermitted, []uint64{0x0040000}},
		{"fchmod", normal, allow, []uint64{3, 0o4755}},
		{"fchmod", plain, notPermitted, []uint64{3, 0o4755}},
		{"fchmod", plain, notPermitted, []uint64{3, 0o2755}},
		{"fchmod", plain, allow, []uint64{3, 0o1777}},
		{"fchmod", plain, allow, []uint64{3, 0o665}}, // 437, the number of openat2
		{"openat", plain, notPermitted, []uint64{3, 0, unix.O_CREAT, 0o4755}},
		{"openat", plain, notPermitted, []uint64{3, 0, unix.O_TMPFILE, 0o4755}},
		{"openat", plain, allow, []uint64{3, 0, unix.O_DIRECTORY, 0o4755}}, // no mode: what is there is chance
		{"openat", plain, allow, []uint64{3, 0, unix.O_CREAT, 0o755}},
	} {
		require.Equal(t, c.want, answer(t, c.code, id, number(c.name), c.args...), "%s %x", c.name, c.args)
	}
	require.Equal(t, uint32(noCall), answer(t, normal, id+1, number("read")), "another architecture")
	require.Equal(t, uint32(noCall), answer(t, normal, id, maxCall+1), "a call of the future")
}

// TestTheTreeAnswersAsTheRules: each call gets what its own rule says alone.
func TestTheTreeAnswersAsTheRules(t *testing.T) {
	t.Parallel()
	info, err := arch.GetInfo("")
	require.NoError(t, err)
	id := uint32(info.ID)
	values := []uint64{0, 1, 17, 0o4755, 0o665, unix.AF_NETLINK, unix.CLONE_NEWUSER, unix.CLONE_NEWCGROUP, 0xffffffff, 1 << 40}
	for _, f := range []filter{{}, {clone3: true}, {plainModes: true}, {clone3: true, plainModes: true}} {
		code, err := assemble(f)
		require.NoError(t, err)
		require.Less(t, len(code)/8, 300)
		a := rules(info.SyscallNames, f)
		require.Greater(t, len(a.cases), 60)
		for n := uint32(0); n <= maxCall; n++ {
			alone, err := bpf.NewVM(append(slices.Clone(a.cases[n]), bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
			require.NoError(t, err)
			for i, v := range values {
				args := []uint64{v, values[(i+3)%len(values)], values[(i+5)%len(values)], values[(i+7)%len(values)]}
				want, err := alone.Run(callData(id, n, args...))
				require.NoError(t, err)
				require.Equal(t, uint32(want), answer(t, code, id, n, args...), "%d %x", n, args)
			}
		}
	}
}
