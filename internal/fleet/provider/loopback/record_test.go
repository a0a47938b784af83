package loopback

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// earlier is a machine's file as earlier releases wrote it.
const earlier = `{
  "ID": "lo-0123456789abcdef",
  "Intent": "i1",
  "Type": "t",
  "Zone": "a",
  "Market": "spot",
  "Address": "127.0.0.1",
  "Capacity": {
    "CPU": 1000,
    "MemoryMB": 512,
    "DiskMB": 10
  },
  "Tags": {
    "k": "v"
  },
  "CreatedAt": "2026-11-23T05:00:00Z",
  "Started": true,
  "EndedAt": "0001-01-01T00:00:00Z",
  "Dying": false,
  "PID": 17,
  "Born": 99
}`

func TestRecordsAreReadAndWrittenAsByEarlierReleases(t *testing.T) {
	t.Parallel()
	p := &Provider{}
	p.cfg.Dir = t.TempDir()
	const id = "lo-0123456789abcdef"
	path := filepath.Join(p.folder(id), recordFile)
	require.NoError(t, os.Mkdir(p.folder(id), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(earlier), 0o600))
	r, err := p.read(id)
	require.NoError(t, err)
	require.Equal(t, drover.Capacity{CPU: 1000, MemoryMB: 512, DiskMB: 10}, r.Capacity)
	require.Equal(t, 17, r.PID)
	require.Equal(t, provider.Machine{
		ID: id, Intent: "i1", Type: "t", Zone: "a", Market: "spot", Address: "127.0.0.1", Tags: map[string]string{"k": "v"},
		CreatedAt: time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC), State: provider.Running,
	}, r.machine())
	require.NoError(t, p.write(r))
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, earlier, string(again))
}

func TestTheStateOfARecord(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
	for want, r := range map[provider.State]record{
		provider.Pending:     {},
		provider.Running:     {PID: 1},
		provider.Terminating: {PID: 1, EndedAt: ended, Dying: true},
		provider.Terminated:  {PID: 1, EndedAt: ended},
	} {
		require.Equal(t, want, r.machine().State)
	}
}

func TestRecordsThatAreNotThereOrSpoilt(t *testing.T) {
	t.Parallel()
	p := &Provider{}
	p.cfg.Dir = t.TempDir()
	for _, id := range []string{"", "lo-", "../lo-0123456789abcdef", "lo-0123456789abcdef"} {
		_, err := p.read(id)
		require.Equal(t, provider.NotFound, provider.KindOf(err), id)
	}
	const id = "lo-0123456789abcdef"
	require.NoError(t, os.Mkdir(p.folder(id), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.folder(id), recordFile), []byte(`{"ID":`), 0o600))
	_, err := p.read(id)
	require.Equal(t, provider.Transient, provider.KindOf(err), "a machine whose record is spoilt is not taken for gone")
	ids, err := p.ids()
	require.NoError(t, err)
	require.Equal(t, []string{id}, ids)
}
