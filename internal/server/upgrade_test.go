package server

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/appendlog"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/localstate"
)

// TestDataOfAnOlderProgram opens a data folder that the program of commit 8ba66b7 left. It has a snapshot, two entries of the
// log after it, the node's state of its tasks, the journal of claims, the ledger of executions, and the fleet's audit. How such
// a folder is made stands in testdata/README.md.
func TestDataOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	dir := unpacked(t, "testdata/8ba66b7.tar.gz")
	cfg := config.Merge(config.Default(), &config.Agent{DataDir: dir, Server: &config.Server{Enabled: new(true)}})
	cfg.Ports.HTTP, cfg.Ports.RPC = 0, 0
	a, err := New(t.Context(), cfg, Deps{Log: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, IDs: id.Random{}})
	require.NoError(t, err)
	defer a.close()
	s := a.control.store.Snapshot()
	require.Equal(t, command.Newest, a.control.log.Version(), "a server that is alone writes what its program reads")

	statuses := map[string]string{}
	for j := range s.Jobs("default", "") {
		statuses[j.ID] = j.Status
	}
	require.Equal(t, map[string]string{
		"svc": "running", "bought": "running", "done": "dead", "per": "running", "after-the-snapshot": "pending",
		"environment-scratch": "running", "environment-box": "running",
	}, statuses)
	require.Equal(t, 60, s.Job("default", "svc").Priority, "an entry of the log after the snapshot counts")
	require.EqualValues(t, 1, s.Job("default", "svc").Version)
	env, err := environment.FromJob(s.Job(drover.DefaultNamespace, environment.JobOf("scratch").ID))
	require.NoError(t, err)
	require.Equal(t, 3, env.PoolSize)

	var claimed, running []string
	for n := range s.Nodes("") {
		for alloc := range s.AllocationsByNode(n.ID) {
			if alloc.Claim != nil {
				claimed = append(claimed, alloc.ID)
			}
			if alloc.ClientStatus == drover.AllocClientRunning {
				running = append(running, alloc.JobID)
			}
		}
	}
	require.Equal(t, []string{"fea8b66e-dec3-49a2-a24b-78d060df821c"}, claimed)
	require.Len(t, running, 9, "%v", running)
	var successful int
	for d := range s.Deployments("default", "") {
		if d.Status == drover.DeploymentSuccessful {
			successful++
		}
	}
	require.Equal(t, 2, successful)

	require.NotEmpty(t, s.FleetIdentity().Key)
	require.Equal(t, 0.05, s.FleetPool("std").Policy.Types[0].Price)
	machine := s.FleetInstance("48ad0a75-c400-4f3e-bdda-5103ef7cd524")
	require.NotNil(t, machine)
	require.Equal(t, fleet.InstanceActive, machine.State)
	require.NotEmpty(t, machine.NodeID)

	thisBoot(t, filepath.Join(dir, "client", "runners.log"))
	local, err := localstate.OpenBolt(filepath.Join(dir, "client", "state.db"), slog.New(slog.DiscardHandler), clock.Wall{})
	require.NoError(t, err)
	defer local.Close()
	records, err := local.Load()
	require.NoError(t, err)
	var tasks []string
	for _, r := range records {
		if len(r.Tasks) > 0 {
			tasks = append(tasks, r.Alloc.JobID)
		}
	}
	slices.Sort(tasks)
	require.Equal(t, []string{
		"done", "environment-box", "environment-box", "environment-scratch", "environment-scratch", "environment-scratch",
		"environment-scratch", "svc", "svc",
	}, tasks, "the node finds its tasks, those of warm runners too")
}

// thisBoot has the node's state of its warm runners say that this machine was not started anew since: else the node forgets
// them. It adds a newer record of the boot id.
func thisBoot(t *testing.T, path string) {
	t.Helper()
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	f, err := appendlog.Open(path, appendlog.Frames)
	require.NoError(t, err)
	require.NoError(t, f.Read(func([]byte, appendlog.Span) {}))
	record := append([]byte("\x01\x04boot"), bytes.TrimSpace(id)...)
	require.NoError(t, f.Append(appendlog.AppendFrame(nil, func(all []byte) []byte { return append(all, record...) })))
	require.NoError(t, f.Close())
}

// unpacked returns a folder with the archive's files.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}
