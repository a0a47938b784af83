package drivertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/programtest"
)

// AsUser runs one test of this test program again, as a user without rights and in a folder of that user's. The variable ("NAME=value")
// tells the test that it is this second run. If group is not negative, it is a descriptor of the v2 control group in which the run
// starts.
func AsUser(t *testing.T, test, variable string, group int) {
	t.Helper()
	const user = 12345
	dir, err := os.MkdirTemp("", "user-*")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chown(dir, user, user))
	self, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	program := filepath.Join(dir, "test") // go test's own is where only root can read
	programtest.Write(t, program, data)
	c := exec.Command(program, "-test.run=^"+test+"$", "-test.v")
	c.Dir, c.Env = dir, append(os.Environ(), variable, "TMPDIR="+dir, "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}, UseCgroupFD: group >= 0, CgroupFD: group}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+test)
}
