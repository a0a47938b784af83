package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// smallDisk mounts a disk of that size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	disk := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", 0, "size="+size))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	return disk
}

// fill leaves so many bytes of a disk free; taking the file away gives them back.
func fill(t *testing.T, disk string, left int64) (file string) {
	t.Helper()
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(disk, &s))
	file = filepath.Join(disk, "ballast")
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	for free := int64(s.Bavail) * s.Bsize; free > left; free -= 4 << 10 {
		if _, err = f.Write(make([]byte, 4<<10)); err != nil {
			return file
		}
	}
	return file
}

// TestTheDiskIsFullWhileTheStateIsRestored: what does not fit is refused with the reason and changes nothing, whether the archive could not
// be kept or its parts not be written to the log.
func TestTheDiskIsFullWhileTheStateIsRestored(t *testing.T) {
	t.Parallel()
	archive := noisyArchive(t, 20)
	require.Greater(t, len(archive), 5<<20)
	disk := smallDisk(t, "96m")
	a := start(t, append([]string{"-server"}, config(t, filepath.Join(disk, "data"), "")...)...)
	_, _, err := a.nomad().Jobs().Register(serversJob("present"), nil)
	require.NoError(t, err)
	for left, why := range map[int64]string{1 << 20: "no space", 16 << 20: "no space"} { // the log wants 12 MiB
		ballast := fill(t, disk, left)
		_, err = a.nomad().Operator().SnapshotRestore(bytes.NewReader(archive), nil)
		require.ErrorContains(t, err, why)
		require.NoError(t, os.Remove(ballast))
		require.Equal(t, []string{"present"}, jobIDs(t, a.nomad(), false))
	}
	eventually(t, "the restore", func() (bool, string) {
		_, err := a.nomad().Operator().SnapshotRestore(bytes.NewReader(archive), nil)
		return err == nil, fmt.Sprint(err)
	})
	require.Len(t, jobIDs(t, a.nomad(), false), 20)
}

// TestScheduledArchives: the leader saves by itself; a full disk is told, and takes no archive away.
func TestScheduledArchives(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "2m")
	block := fmt.Sprintf("server {\n  snapshots {\n    interval = \"200ms\"\n    keep = 2\n    folder = %q\n  }\n}\n",
		filepath.Join(disk, "saved"))
	a := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "data"), block)...)...)
	files := func() (names []string) {
		names, err := filepath.Glob(filepath.Join(disk, "saved", "*.snap"))
		require.NoError(t, err)
		return names
	}
	eventually(t, "two archives", func() (bool, string) { return len(files()) == 2, fmt.Sprint(files()) })
	ballast := fill(t, disk, 0)
	eventually(t, "the problem", func() (bool, string) {
		h, err := a.nomad().Agent().Health()
		require.NoError(t, err)
		return h.Server.Ok && strings.Contains(h.Server.Message, "no space"), h.Server.Message
	})
	require.Len(t, files(), 2)
	for _, name := range files() {
		require.Contains(t, a.must("operator", "snapshot", "inspect", name), "Index")
	}
	require.NoError(t, os.Remove(ballast))
	eventually(t, "the end of the problem", func() (bool, string) {
		h, err := a.nomad().Agent().Health()
		require.NoError(t, err)
		return h.Server.Message == "ok", h.Server.Message
	})
}
