package docker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// TestTheSupervisorIsOutOfReach: what the agent commands drover-init by cannot be found, opened or taken from inside,
// not by the container's root either.
func TestTheSupervisorIsOutOfReach(t *testing.T) {
	t.Parallel()
	outOfReach(t, newBench(t).warm(t, nil))
}

func outOfReach(t *testing.T, h *handle) {
	t.Helper()
	for text, want := range map[string]string{
		"ls -A /.drover/boot | wc -l":              "0\n",
		"find / -xdev -type s 2>/dev/null | wc -l": "0\n",
		"wc -l < /proc/net/unix":                   "1\n", // its headline
		"for n in 3 4 5; do readlink /proc/1/fd/$n; ls /proc/1/fd/$n/; (: < /proc/1/fd/$n); done 2>/dev/null; echo no": "no\n",
		"cat /proc/1/environ 2>/dev/null || echo no":                            "no\n",
		"cat /proc/1/mem 2>/dev/null || echo no":                                "no\n",
		"ls /proc/1/root/ 2>/dev/null || echo no":                               "no\n",
		"touch /.drover/boot/h 2>/dev/null || echo no":                          "no\n",
		"echo x 2>/dev/null > /.drover/init || echo no":                         "no\n",
		"umount /.drover/boot 2>/dev/null || echo no":                           "no\n",
		"/.drover/init 2>/dev/null; echo $?":                                    "70\n", // without an agent it does nothing
		"/.drover/init container /.drover/boot/h >/dev/null; echo $?":           "1\n",
		"kill -9 1; kill -STOP 1; kill -TERM 1; echo alive":                     "alive\n",
		"env | grep -c drover":                                                  "0\n",
		"cat /proc/self/cgroup >/dev/null; ls /proc/self/fd | wc -l":            "4\n", // 0, 1, 2 and its own
		"mkdir -p /m; mount -t tmpfs x /m 2>/dev/null || echo no":               "no\n",
		"echo 1 2>/dev/null > /proc/sys/kernel/panic || echo no":                "no\n",
		"mknod /sda b 8 0; mknod /vda b 254 0; cat /vda 2>/dev/null || echo no": "no\n",
	} {
		require.Equal(t, want, drivertest.Root(t, h, text).Out, text)
	}
}

// TestDescriptorsLeadNowhere: a guest that was given CAP_SYS_PTRACE can look into drover-init, but finds no way up into
// the machine from its log folder.
func TestDescriptorsLeadNowhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.AllowCaps = []string{"sys_ptrace"} })
	h := b.run(t, b.spec(t, script2("exec sleep 600", map[string]any{"cap_add": []any{"sys_ptrace"}}))) // a warm runner has no logs
	r := drivertest.Root(t, h, "cd -P /proc/1/fd/5 && ls -A ../../../../.. . | sort -u | grep -c '^etc$'; ls -A ..")
	require.NotContains(t, r.Out, "alloc")
	require.True(t, strings.HasPrefix(r.Out, "0\n") || r.Out == "", r.Out+r.Err)
}

// TestDeathOfTheSupervisor ends the container and all that it ran, and is never an exit with 0.
func TestDeathOfTheSupervisor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.run(t, b.spec(t, map[string]any{"command": "sleep", "args": []any{"600"}}))
	require.NoError(t, h.Last().Kill())
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, exit.Err)
	require.Equal(t, 137, exit.Code)
	_, err = h.StartExecution(t.Context(), execution.Spec{Argv: []string{"true"}})
	require.Error(t, err)
	_, err = supervisor.Connect(t.Context(), supervisor.SocketPath(h.box.stateDir), b.clientOptions(h.box))
	require.Error(t, err)
}

// TestForkBomb is held by pids_limit, and its end leaves nothing.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	forkBomb(t, newBench(t))
}

func forkBomb(t *testing.T, b *bench) {
	t.Helper()
	h := b.warm(t, map[string]any{"pids_limit": 60})
	r := drivertest.Do(t, h, execution.Spec{
		Argv: []string{"/bin/sh", "-c", "f() { sleep 100 & f; }; f"}, Limits: drover.Limits{Wall: 2e9, Pids: 40},
	})
	require.NotZero(t, r.Receipt.ExitCode)
	require.Equal(t, "ok\n", drivertest.Sh(t, h, "echo ok").Out)
	require.Equal(t, "0\n", drivertest.Sh(t, h, "ps | grep -c '[s]leep 100'").Out)
}

// TestMemoryBomb is ended by the kernel; the supervisor and its other executions live on.
func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	memoryBomb(t, newBench(t))
}

func memoryBomb(t *testing.T, b *bench) {
	t.Helper()
	h := b.warm(t, nil)
	r := drivertest.Sh(t, h, "tail /dev/zero")
	require.Equal(t, execution.CauseOOM, r.Receipt.Cause)
	require.Equal(t, "ok\n", drivertest.Sh(t, h, "echo ok").Out)
	task := b.run(t, b.spec(t, map[string]any{"command": "tail", "args": []any{"/dev/zero"}}))
	exit, err := task.Wait(t.Context())
	require.NoError(t, err)
	require.True(t, exit.OOMKilled)
	require.Equal(t, 137, exit.Code)
}

// TestContainersOfOneAllocation may share what no other's may: a helper looks after the processes of its task.
func TestContainersOfOneAllocation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.spec(t, script2("exec sleep 612", nil))
	victim := b.run(t, first)
	second := b.spec(t, map[string]any{"pid_mode": "container:" + containerName(&first)})
	second.Pool = true
	_, err := b.Start(t.Context(), second)
	require.ErrorContains(t, err, "pid_mode: container:"+containerName(&first)+" is outside of the container")
	second.AllocID, second.TaskName = first.AllocID, "helper"
	require.Equal(t, "1\n", drivertest.Root(t, b.run(t, second), "ps | grep -c '[s]leep 612'").Out)
	require.Equal(t, "0\n", drivertest.Root(t, victim, "ps | grep -c '[h]elper'").Out)
}
