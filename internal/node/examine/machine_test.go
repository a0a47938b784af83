package examine

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
)

// TestTheDockerSocket: a daemon that does not let us in is another thing than none.
func TestTheDockerSocket(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]struct{ state, says string }{
		nil: {cluster.OK, "a daemon answers at /s"},
		&net.OpError{Op: "dial", Err: fmt.Errorf("connect: %w", unix.EACCES)}: {cluster.Missing, "no permission for /s: a daemon may run there"},
		fs.ErrPermission:  {cluster.Missing, "usermod -aG docker"},
		fs.ErrNotExist:    {cluster.Missing, "no daemon answers at /s: only jobs with the docker driver need it"},
		unix.ECONNREFUSED: {cluster.Missing, "no daemon answers"},
	} {
		f := dockerPart("/s", err)
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
	require.Equal(t, cluster.OK, checkDocker(t.Context()).State)
}

func TestGVisorIsLookedForInThePath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.Contains(t, checkRunsc().Says, "no runsc in PATH")
	f := checkNamespaces(t.Context())
	require.Equal(t, cluster.Weak, f.State, "there is no program to try them with")
}

func TestWhatRightsAndGroupsAreWorth(t *testing.T) {
	t.Parallel()
	require.Equal(t, cluster.OK, checkRights(true).State)
	require.Equal(t, cluster.Weak, checkRights(false).State)
	require.Equal(t, cluster.OK, checkGroups(func() (string, []string) { return "v2", nil }).State)
	f := checkGroups(func() (string, []string) { return "v1", []string{"no pids", "no freezer"} })
	require.Equal(t, cluster.Weak, f.State)
	require.Equal(t, "v1; no pids; no freezer", f.Says)
	require.Equal(t, cluster.OK, checkOverlay(func() bool { return true }).State)
	f = checkOverlay(func() bool { return false })
	require.Equal(t, cluster.Missing, f.State)
	require.True(t, f.Needed, "images are layered")
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	require.Equal(t, cluster.OK, checkKernel().State)
	require.Equal(t, cluster.OK, checkSeccomp().State)
	require.Equal(t, cluster.Weak, checkDisk("/no/such").State)
	require.Contains(t, checkDisk(t.TempDir()).Says, " free at ")
	require.Empty(t, text("/no/such"))
	names := map[string]bool{}
	for _, f := range Machine(t.Context(), t.TempDir()) {
		require.NotEmpty(t, f.Says, f.Check)
		require.Contains(t, []string{cluster.OK, cluster.Weak, cluster.Missing}, f.State, f.Check)
		names[f.Check] = true
	}
	require.Len(t, names, 9, "each once")
}

// TestWhatANodeRegisters: what changes all the time is no new registration, and looking is not done at every question.
func TestWhatANodeRegisters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New("/data", clock.Wall{})
		looked, disk := 0, cluster.OK
		r.look = func(_ context.Context, dir string) []cluster.Part {
			looked++
			return []cluster.Part{
				{Check: "disk", State: disk, Says: fmt.Sprint(looked, " GiB free at ", dir)}, {Check: "control groups", State: cluster.OK},
			}
		}
		had := map[string]string{"os.name": "debian", "unique.examined.gone": "ok"}
		want := map[string]string{"os.name": "debian", "unique.examined.disk": "ok", "unique.examined.control_groups": "ok"}
		require.Equal(t, want, r.On(t.Context(), had))
		require.Contains(t, had, "unique.examined.gone", "it is a copy")
		time.Sleep(again - 1) // of the bubble
		require.Equal(t, want, r.On(t.Context(), had))
		require.Equal(t, 1, looked)
		disk = cluster.Weak
		time.Sleep(time.Nanosecond) // of the bubble
		require.Equal(t, "weak: less than 1 GiB is free for data", r.On(t.Context(), had)["unique.examined.disk"])
		require.Equal(t, 2, looked)
	})
	require.Len(t, New(t.TempDir(), clock.Wall{}).On(t.Context(), nil), 7, "docker and gVisor are not missed")
}
