package docker

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestARunnersDiskIsBounded: what an unknown guest writes, wherever, is held by a file system of its size, or ends it.
func TestARunnersDiskIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, runtime := range []string{"runc", "runsc"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			diskIsBounded(t, b, map[string]any{"runtime": runtime})
		})
	}
}

func diskIsBounded(t *testing.T, b *bench, config map[string]any) {
	t.Helper()
	start := func() (*handle, driver.Spec) {
		spec := b.spec(t, config)
		spec.Pool, spec.DiskMB = true, 64
		return b.run(t, spec), spec
	}
	neighbour, _ := start()
	h, spec := start()
	for _, dir := range []string{"/alloc", "/local", "/secrets", "/tmp"} {
		r := drivertest.Sh(t, h, "cd "+dir+"; head -c 200000000 /dev/zero > f; wc -c < f; rm f; cp /bin/busybox x; chmod 4755 x; echo ok")
		require.Equal(t, "67108864\nok\n", r.Out, r.Err)
	}
	require.Empty(t, inHostsFolders(t, spec), "nothing of it is on the machine's disk")
	require.NoError(t, h.Destroy(t.Context()))
	for _, script := range []string{
		"i=0; while :; do head -c 5000000 /dev/zero > /root/$i; i=$((i+1)); sleep 0.02; done",
		"i=3; while [ $i -lt 9 ]; do f=/root/f$i; eval \"exec $i>$f\"; rm $f; head -c 20000000 /dev/zero >&$i; i=$((i+1)); done; sleep 300",
		"i=0; while :; do head -c 5000000 /dev/zero >> /etc/hosts || break; sleep 0.02; done; sleep 300",
	} {
		h, _ := start()
		done := make(chan driver.Exit, 1)
		go func() { // ends with the runner
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			exit, _ := h.Wait(ctx)
			done <- exit
		}()
		s, err := h.StartExecution(t.Context(), execution.Spec{ID: "x", Privileged: true, Argv: []string{"/bin/sh", "-c", script}})
		require.NoError(t, err)
		exit := <-done
		require.ErrorContains(t, exit.Err, "killed: its container's disk, with its allocation's folder, held more than 64 MB")
		_ = s.Close()
		require.NoError(t, h.Destroy(t.Context()))
		require.NoDirExists(t, h.box.disk.Layer)
	}
	require.Equal(t, "alive\n", drivertest.Sh(t, neighbour, "echo alive").Out)
}

func inHostsFolders(t *testing.T, spec driver.Spec) (files []string) {
	t.Helper()
	for _, dir := range []string{spec.Dirs.Shared, spec.Dirs.Local, spec.Dirs.Secrets} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		}))
	}
	return files
}

// TestOfAJobsDiskIsTold, and it goes on.
func TestOfAJobsDiskIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(
		t,
		script2(
			"head -c 8000000 /dev/zero > /alloc/f; head -c 8000000 /dev/zero > /var-f; until [ -e /local/go ]; do sleep 0.05; done; echo went on",
			nil,
		),
	)
	spec.DiskMB = 10
	h := b.run(t, spec)
	told := make(chan string, 1)
	h.OnNotice(func(text string) { told <- text })
	require.Contains(t, <-told, "more than 10 MB (ephemeral_disk has size = 10)")
	require.NoError(t, os.WriteFile(filepath.Join(spec.Dirs.Local, "go"), nil, 0o600))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	require.NoError(t, exit.Err)
}

// TestARunnersBoundOutlivesTheAgent that started it.
func TestARunnersBoundOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := b.spec(t, nil)
	spec.Pool, spec.DiskMB = true, 20
	first := b.run(t, spec)
	first.unwatchDisk()
	require.NoError(t, first.Last().Close())
	later := b.restart(t)
	h, err := later.Attach(t.Context(), first.State())
	require.NoError(t, err)
	s, err := h.(driver.Execer).StartExecution(
		t.Context(),
		execution.Spec{ID: "x", Privileged: true, Argv: []string{"/bin/sh", "-c", "head -c 30000000 /dev/zero > /root/f; sleep 300"}},
	)
	require.NoError(t, err)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, exit.Err, "more than 20 MB")
	_ = s.Close()
	require.NoError(t, h.Destroy(t.Context()))
}
