package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// climb is what the sandbox's root, who may chroot, does to get above its root: it goes up from outside of a root of its own.
const climb = `python3 -c '
import os
os.mkdir("/tmp/e")
top = os.open("/", os.O_RDONLY)
os.chroot("/tmp/e")
os.fchdir(top)
for i in range(64): os.chdir("..")
os.chroot(".")
print(*sorted(os.listdir("/")))
print(*sorted(os.listdir("/tmp")))
'`

// TestBothBeginningsMakeTheSameSandbox: one whose mount namespace began empty, and one that let go of the machine's mounts.
func TestBothBeginningsMakeTheSameSandbox(t *testing.T) {
	t.Parallel()
	var mounts []string
	for _, bare := range []bool{false, true} {
		b := newBench(t)
		if bare && !b.bare() {
			t.Log("this kernel cannot mount /proc from outside (6.18 can)")
			return
		}
		if !bare {
			b.Driver.bare = func() bool { return false }
		}
		h := b.warm(t, nil)
		r := drivertest.Root(t, h, "cut -d' ' -f4-6 /proc/self/mountinfo | sort; cat /proc/1/status | grep NSpid; "+
			"set -- /proc/[0-9]*; echo $#; stat -c %u /proc/1 /proc/sys/user; (echo 1 > /proc/sys/user/max_user_namespaces) 2>&1")
		mounts = append(mounts, r.Out)
		require.Empty(t, r.Err)
		require.Contains(t, r.Out, " /proc ")
		r = drivertest.Root(t, h, "echo $(ls /); ls /tmp; "+climb)
		lines := strings.Split(strings.TrimSpace(r.Out), "\n")
		require.Len(t, lines, 3, "%s %s", r.Out, r.Err)
		require.Equal(t, lines[0], lines[1], "above the root there is nothing else")
		require.Equal(t, "e", lines[2])
		for what, script := range map[string]string{
			"its mount namespace": "nsenter -t 1 -m true", "to uncover": "umount /proc/cmdline", "to uncover all": "umount -l /",
			"another /proc": "mount -t proc proc /mnt", "a namespace of users": "unshare -U true",
		} {
			refused(t, h, what, script)
		}
		require.NoError(t, h.Destroy(t.Context()))
	}
	require.Equal(t, mounts[0], mounts[1])
	mine, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mine), "drover /tmp") // the machine sees nothing of the empty namespace
}
