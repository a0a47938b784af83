package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestTheDockerSocket: a daemon that does not let us in is another thing than none.
func TestTheDockerSocket(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct{ state, says string }{
		nil: {findingOK, "a daemon answers at /s"},
		&net.OpError{Op: "dial", Err: fmt.Errorf("connect: %w", unix.EACCES)}: {findingMissing, "no permission for /s: a daemon may run there"},
		fs.ErrPermission:  {findingMissing, "usermod -aG docker"},
		fs.ErrNotExist:    {findingMissing, "no daemon answers at /s: only jobs with the docker driver need it"},
		unix.ECONNREFUSED: {findingMissing, "no daemon answers"},
	} {
		f := dockerFinding("/s", err)
		require.Equal(t, want.state, f.State, "%v", err)
		require.Contains(t, f.Says, want.says)
		require.False(t, f.Needed, "sandboxes need none")
	}
}

func TestTheDockerHostIsLookedAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	t.Setenv("DOCKER_HOST", "unix://"+path)
	require.Contains(t, checkDocker(t.Context()).Says, "no daemon answers at "+path)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, findingOK, checkDocker(t.Context()).State)
}

func TestGVisorIsLookedForInThePath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.Contains(t, checkRunsc().Says, "no runsc in PATH")
	f := checkNamespaces(t.Context())
	require.Equal(t, findingWeak, f.State, "there is no program to try them with")
}

func TestWhatRightsAndGroupsAreWorth(t *testing.T) {
	t.Parallel()
	require.Equal(t, findingOK, checkRights(true).State)
	require.Equal(t, findingWeak, checkRights(false).State)
	require.Equal(t, findingOK, checkGroups(func() (string, []string) { return "v2", nil }).State)
	f := checkGroups(func() (string, []string) { return "v1", []string{"no pids", "no freezer"} })
	require.Equal(t, findingWeak, f.State)
	require.Equal(t, "v1; no pids; no freezer", f.Says)
	require.Equal(t, "not looked at", checkGroups(nil).Says)
	require.Equal(t, findingOK, checkOverlay(nil).State)
	f = checkOverlay(func() bool { return false })
	require.Equal(t, findingMissing, f.State)
	require.True(t, f.Needed, "images are layered")
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	require.Equal(t, findingOK, checkKernel().State)
	require.Equal(t, findingOK, checkSeccomp().State)
	require.Equal(t, findingWeak, checkDisk("/no/such").State)
	require.Contains(t, checkDisk(t.TempDir()).Says, " free at ")
	require.Empty(t, text("/no/such"))
	names := map[string]bool{}
	for _, f := range examine(t.Context(), Probes{}, t.TempDir()) {
		require.NotEmpty(t, f.Says, f.Check)
		require.Contains(t, []string{findingOK, findingWeak, findingMissing}, f.State, f.Check)
		names[f.Check] = true
	}
	require.Len(t, names, 9, "each once")
	require.Error(t, errors.Join(verdict([]finding{{Check: "kernel", State: findingMissing, Needed: true}})))
}
