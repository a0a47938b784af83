package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// refused runs a script as the sandbox's root and expects it to print "refused", which it does when the bad thing
// failed.
func refused(t *testing.T, h *handle, what, script string) {
	t.Helper()
	r := drivertest.Root(t, h, script)
	require.NotZero(t, r.Receipt.ExitCode, "%s was allowed: %s%s", what, r.Out, r.Err)
}

// call is a Python script that makes a system call and fails unless it succeeded.
func call(number int, args string) string {
	return fmt.Sprintf("python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); r = l.syscall(%d, %s); "+
		"exit(0 if r >= 0 else ctypes.get_errno())'", number, args)
}

func TestTheKernelIsClosed(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	for what, script := range map[string]string{
		"mount tmpfs":         "mount -t tmpfs x /mnt",
		"remount":             "mount -o remount,rw /usr",
		"bind mount":          "mount --bind / /mnt",
		"umount":              "umount -l /proc/sys",
		"user namespace":      "unshare -U true",
		"mount namespace":     "unshare -m true",
		"clone3 namespace":    call(435, `(ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17), 88`),
		"clone namespace":     call(56, `0x10000011, 0, 0, 0, 0`),
		"setns":               "nsenter -t 1 -m true",
		"mknod":               "mknod /tmp/sda b 8 0",
		"raw disk":            "mknod /dev/sda b 8 0 || head -c1 /dev/sda",
		"write /usr":          "touch /usr/x",
		"write sysctl":        "echo 1 > /proc/sys/user/max_user_namespaces",
		"write kernel sysctl": "echo x > /proc/sys/kernel/core_pattern",
		"sysrq":               "echo b > /proc/sysrq-trigger && grep b /proc/sysrq-trigger",
		"kcore":               "head -c1 /proc/kcore | grep .",
		"kernel log":          "dmesg",
		"module":              call(175, `0, 0, b""`),
		"bpf":                 call(321, `0, 0, 0`),
		"perf":                call(298, `0, 0, -1, -1, 0`),
		"userfaultfd":         call(323, `0`),
		"io_uring":            call(425, `1, (ctypes.c_uint64 * 15)()`),
		"keyring":             call(250, `0, -3, 1`),
		"AF_ALG":              "python3 -c 'import socket; socket.socket(38, 5)'",
		"AF_VSOCK":            "python3 -c 'import socket; socket.socket(40, 1)'",
		"AF_PACKET":           "python3 -c 'import socket; socket.socket(17, 3)'",
		"raw socket":          "python3 -c 'import socket; socket.socket(2, 3, 1)'",
		"open_by_handle":      call(304, `-100, (ctypes.c_uint64 * 3)(8, 1, 2), 0`),
		"pivot_root":          call(155, `b"/", b"/"`),
		"host name":           "hostname evil",
		"clock":               "date -s 2001-01-01",
		"reboot":              call(169, `0xfee1dead, 672274793, 0x89abcdef`),
		"x32 calls":           call(0x40000000+39, "0"),
		"set time zone":       call(164, "0, 0"),
		"new system calls":    call(900, "0"),
		"swap":                call(167, `b"/tmp/x", 0`),
		"ptrace init":         call(101, `16, 1, 0, 0`),
		"init's memory":       "head -c1 /proc/1/mem",
		"init's environment":  "cat /proc/1/environ | grep .",
		"init's descriptors":  "ls -l /proc/1/fd/ | grep -- '->' || cat /proc/1/fd/3",
		"init's root":         "ls /proc/1/root/",
		"pidfd_getfd":         call(438, "3, 3, 0"),
		"kill init":           "kill -9 1; kill -TERM 1; kill -SEGV 1; sleep 0.2; exit 1",
		"debugfs":             "mount -t debugfs x /mnt || ls /sys/kernel/debug",
		"cgroup file system":  "ls /sys/fs/cgroup/*",
		"mount a cgroup":      "mount -t cgroup2 x /mnt",
		"chroot out": `python3 -c 'import os; os.mkdir("/tmp/c"); os.chroot("/tmp/c"); ` +
			`[os.chdir("..") for i in range(99)]; os.chroot("."); os.stat("/work")'`,
		"other users' devices": "cat /dev/mem /dev/kmsg /dev/vda",
	} {
		refused(t, h, what, script)
	}
	require.Equal(t, "alive\n", drivertest.Sh(t, h, "echo alive").Out)
}

func TestSeccompEndsWithOtherArchitectures(t *testing.T) {
	t.Parallel()
	// int 0x80 is the 32-bit entry: call 20 there is getpid, and must not be let through with the wrong number.
	code, err := (&seccompPrograms{}).program(filter{plainModes: true})
	require.NoError(t, err)
	require.Less(t, len(code)/8, 4096, "the kernel takes no more")
	h := newBench(t).warm(t, nil)
	r := drivertest.Sh(t, h, `python3 -c '
import mmap, ctypes
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print(f())'`)
	require.Equal(t, "-38\n", r.Out, "%s", r.Err)
}

func TestSetuidHasNoEffect(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := drivertest.Root(t, h, "cp /usr/bin/id /tmp/id && chown 0:0 /tmp/id && chmod 4755 /tmp/id && ls -l /tmp/id")
	require.Contains(t, r.Out, "-rwsr-xr-x")
	require.Contains(t, drivertest.Sh(t, h, "/tmp/id").Out, "uid=1000(user)")
	require.NotContains(t, drivertest.Sh(t, h, "/tmp/id").Out, "euid=0")
	require.Contains(t, drivertest.Sh(t, h, "grep NoNewPrivs /proc/self/status").Out, "1")
	require.Contains(t, drivertest.Sh(t, h, "grep CapEff /proc/self/status").Out, "0000000000000000")
}

// TestNoSetuidProgramsOnTheMachine: what a task's root makes in the allocation belongs to the machine's root.
func TestNoSetuidProgramsOnTheMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, map[string]any{"command": "/bin/sleep", "args": []any{"100"}})
	h := b.run(t, spec)
	for what, script := range map[string]string{
		"chmod":    "cp /usr/bin/id /local/id; chmod 4755 /local/id",
		"setgid":   "touch /local/g; chmod g+s /local/g",
		"open":     `python3 -c 'import os; os.open("/local/o", os.O_CREAT | os.O_WRONLY, 0o4755)'`,
		"tmpfile":  `python3 -c 'import os; os.open("/local", os.O_TMPFILE | os.O_WRONLY, 0o4755)'`,
		"mknod":    `python3 -c 'import os; os.mknod("/local/n", 0o104755)'`,
		"fchmodat": call(452, `-100, b"/local/id", 0o4755, 0`),
		"openat2":  call(437, `-100, b"/local/2", (ctypes.c_uint64 * 3)(0o101, 0o4755, 0), 24`),
		"device":   "mknod /local/d c 1 3",
		"file capabilities": `cp /usr/bin/id /local/c && python3 -c 'import os, struct
os.setxattr("/local/c", "security.capability", struct.pack("<IIIII", 0x02000001, 0xc0, 0, 0, 0))'`,
	} {
		refused(t, h, what, script)
	}
	require.Zero(
		t,
		drivertest.Root(
			t,
			h,
			"cp /usr/bin/id /local/id2 && chmod 0755 /local/id2 && mkdir -m 0770 /local/dir && "+
				"python3 -c 'import os; os.setxattr(\"/local/id2\", \"user.x\", b\"1\")'",
		).Receipt.ExitCode,
	)
	entries, err := os.ReadDir(spec.Dirs.Local)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice), e.Name())
	}
}

func TestForkBombIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bomb, neighbour := b.warm(t, map[string]any{"pids_limit": 64}), b.warm(t, nil)
	r := drivertest.Do(t, bomb, execution.Spec{
		Argv:   []string{"/bin/sh", "-c", "f() { f | f & }; (f) & while :; do :; done"},
		Limits: drover.Limits{Wall: time.Second},
	})
	require.Equal(t, execution.CauseTimeout, r.Receipt.Cause)
	require.NotZero(t, r.Receipt.ExitCode)
	require.Equal(t, "still here\n", drivertest.Sh(t, neighbour, "echo still here").Out)
	require.Eventually(t, func() bool {
		return drivertest.Sh(t, bomb, "echo x").Out == "x\n"
	}, time.Minute, 50*time.Millisecond, "the bomb was not cleared away: %+v", drivertest.Sh(t, bomb, "ps ax"))
}

func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bomb, neighbour := b.warm(t, nil), b.warm(t, nil)
	eat := "python3 -c 'b = bytearray(1 << 30); print(len(b))'"
	r := drivertest.Sh(t, bomb, "exec "+eat)
	require.Equal(t, execution.CauseOOM, r.Receipt.Cause, "%+v", r)
	require.Equal(t, 137, r.Receipt.ExitCode)
	require.Equal(t, "still here\n", drivertest.Sh(t, neighbour, "echo still here").Out)
	require.Equal(t, "still here\n", drivertest.Sh(t, bomb, "echo still here").Out)
	r = drivertest.Do(t, bomb, execution.Spec{
		Argv: []string{"/bin/sh", "-c", "exec python3 -c 'b = bytearray(90 << 20)'"}, Limits: drover.Limits{MemoryMB: 32},
	})
	require.Equal(t, execution.CauseOOM, r.Receipt.Cause, "its own limit, below the sandbox's: %+v", r)
}

func TestTaskOutOfMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.run(t, b.spec(t, map[string]any{"command": "/usr/bin/python3", "args": []any{"-c", "b = bytearray(1 << 30)"}}))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.True(t, exit.OOMKilled)
	require.Equal(t, 9, exit.Signal)
	require.NotZero(t, exit.Code)
}

func TestDiskFiller(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, map[string]any{"disk_mb": 20})
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/root", "/alloc", "/local", "/secrets", "/home/user", "/etc", "/opt"} {
		r := drivertest.Root(t, h, "head -c 30000000 /dev/zero > "+dir+"/fill; e=$?; wc -c < "+dir+"/fill; rm "+dir+"/fill; exit $e")
		require.NotZero(t, r.Receipt.ExitCode, "%s took all", dir)
		require.Contains(t, r.Err, "No space left on device", dir)
	}
	r := drivertest.Root(t, h, "python3 -c 'for i in range(100000): open(\"/tmp/%d\" % i, \"w\")'")
	require.NotZero(t, r.Receipt.ExitCode, "files without end")
}

func TestEndlessOutput(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := drivertest.Do(
		t,
		h,
		execution.Spec{Argv: []string{"/usr/bin/yes"}, Limits: drover.Limits{OutputBytes: 1 << 20, Wall: 30 * time.Second}},
	)
	require.Len(t, r.Out, 1<<20)
	require.True(t, r.Receipt.Truncated)
	require.NotZero(t, r.Receipt.ExitCode)
}

func TestOthersAreInvisible(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.warm(t, nil), b.warm(t, nil)
	require.Empty(t, drivertest.Sh(t, one, "echo secret > /tmp/mine; echo secret > /dev/shm/mine; (sleep 300 >/dev/null 2>&1 &)").Err)
	require.Equal(t, "gone\n", drivertest.Root(t, two, "cat /tmp/mine /dev/shm/mine 2>/dev/null || echo gone").Out)
	r := drivertest.Root(t, two, "ls /proc | grep -c '^[0-9]'; ls / /work /mnt /home 2>/dev/null; ipcs -m | wc -l")
	require.NotContains(t, r.Out, "work")
	require.Less(t, strings.Count(drivertest.Root(t, two, "ls /proc | grep '^[0-9]'").Out, "\n"), 8, "other processes are visible")
	require.NotContains(t, drivertest.Root(t, two, "cat /proc/self/mountinfo").Out, b.dir+"/supervisor")
	refused(t, two, "the supervisor's socket", "find / -xdev -type s 2>/dev/null | grep .")
}

// TestSymlinksDoNotLeadOut plants links where the agent reads and writes.
func TestSymlinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	victim := filepath.Join(b.dir, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("host secret"), 0o600))
	spec := b.spec(t, map[string]any{"command": "/bin/sleep", "args": []any{"300"}})
	h := b.run(t, spec)
	drivertest.Root(t, h, "ln -s "+victim+" /local/l; rm -rf /alloc/logs/*; ln -s "+victim+" /alloc/logs/t.stdout.1; ln -s / /local/dir")
	_, _, err := h.Files().Read(t.Context(), execution.FileRequest{Path: "/local/l", Privileged: true})
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
	require.NoError(t, h.Files().Apply(t.Context(), []execution.FileChange{{Path: "/local/dir/tmp/new", Write: true, Data: []byte("x")}}))
	require.NoFileExists(t, "/tmp/new")
	require.Equal(t, "x", drivertest.Root(t, h, "cat /tmp/new").Out)
	// A mount from the task's folder must not be a link.
	bad := b.spec(t, map[string]any{"command": "/bin/true", "mounts": []any{map[string]any{"source": "local/l", "target": "/m"}}})
	require.NoError(t, os.Symlink(victim, filepath.Join(bad.Dirs.Local, "l")))
	_, err = b.Start(t.Context(), bad)
	require.ErrorContains(t, err, "local/l")
	data, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "host secret", string(data))
}

func TestNothingSurvivesDestroy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	r := drivertest.Do(t, h, execution.Spec{KeepTree: true, Argv: []string{
		"/bin/sh", "-c",
		"for i in 1 2 3 4 5; do setsid sh -c 'trap \"\" TERM HUP INT; sleep 4242 & while :; do wait; done' " +
			"</dev/null >/dev/null 2>&1 & done; echo started",
	}})
	require.Equal(t, "started\n", r.Out)
	require.Positive(t, hostProcesses(t, h.box.pid))
	require.NoError(t, h.Destroy(context.Background()))
	require.Zero(t, hostProcesses(t, h.box.pid))
	_, err := h.StartExecution(t.Context(), execution.Spec{Argv: []string{"true"}})
	require.Error(t, err)
}

// hostProcesses counts processes in the pid namespace of the sandbox with this first process.
func hostProcesses(t *testing.T, pid int) int {
	t.Helper()
	want, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return 0
	}
	all, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	require.NoError(t, err)
	n := 0
	for _, p := range all {
		if got, err := os.Readlink(p); err == nil && got == want {
			n++
		}
	}
	return n
}

// TestNobodyLeavesTheGroup: whatever a guest tries, all its processes stay in its control group.
func TestNobodyLeavesTheGroup(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := drivertest.Do(t, h, execution.Spec{Privileged: true, KeepTree: true, Argv: []string{"/bin/sh", "-c", `
		for d in /sys/fs/cgroup /sys/fs/cgroup/* /proc/1/root/sys/fs/cgroup; do echo $$ > $d/cgroup.procs; echo $$ > $d/tasks; done
		mkdir -p /tmp/cg; mount -t cgroup2 none /tmp/cg; mount -t cgroup -o memory none /tmp/cg; mount --bind / /tmp/cg
		unshare -C true; nsenter -t 1 -C true
		for fd in /proc/self/fd/*; do echo 0 > $fd/cgroup.procs; done
		(setsid sleep 300 >/dev/null 2>&1 &); (setsid setsid sleep 300 >/dev/null 2>&1 &)
		until [ "$(grep -l '^sleep$' /proc/[0-9]*/comm 2>/dev/null | wc -l)" = 2 ]; do sleep 0.01; done; echo tried`}})
	require.Equal(t, "tried\n", r.Out)
	members, err := h.box.group.Procs()
	require.NoError(t, err)
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.box.pid))
	require.NoError(t, err)
	all, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	require.NoError(t, err)
	seen := 0
	for _, p := range all {
		if got, err := os.Readlink(p); err != nil || got != ns || strings.HasPrefix(p, fmt.Sprintf("/proc/%d/", h.box.pid)) {
			continue // not the guest's: the supervisor is beside the group
		}
		var pid int
		_, err := fmt.Sscanf(p, "/proc/%d/", &pid)
		require.NoError(t, err)
		require.Contains(t, members, pid)
		seen++
	}
	require.Equal(t, 2, seen)
}
