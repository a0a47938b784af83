package raftlog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// fullStore is raft's store on a disk that is full: it leaves a folder behind, or a snapshot that cannot be given up.
type fullStore struct {
	raft.SnapshotStore
	dir  string
	full bool
}

func (f *fullStore) Create(
	raft.SnapshotVersion, uint64, uint64, raft.Configuration, uint64, raft.Transport,
) (raft.SnapshotSink, error) {
	name := "1-2-3"
	if f.full {
		name = "1-2-4"
	}
	if err := os.Mkdir(filepath.Join(f.dir, name+torn), 0o700); err != nil {
		return nil, err
	}
	if f.full {
		return nil, errors.New("no space left on device")
	}
	return stuckSink{name: name}, nil
}

func (*fullStore) List() ([]*raft.SnapshotMeta, error) { return nil, nil }

type stuckSink struct {
	raft.SnapshotSink
	name string
}

func (s stuckSink) ID() string  { return s.name }
func (stuckSink) Cancel() error { return errors.New("no space left on device") }

// What could not be written leaves nothing, and what is being written stays. A follower on a full disk had a folder more each time that
// its leader tried.
func TestTornSnapshotsAreRemoved(t *testing.T) {
	t.Parallel()
	f := &fullStore{dir: t.TempDir()}
	s := tidied(f, f.dir)
	create := func() (raft.SnapshotSink, error) { return s.Create(1, 2, 1, raft.Configuration{}, 1, nil) }
	names := func() (all []string) {
		entries, err := os.ReadDir(f.dir)
		require.NoError(t, err)
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	sink, err := create()
	require.NoError(t, err)
	f.full = true
	_, err = create()
	require.ErrorContains(t, err, "no space left")
	require.Equal(t, []string{"1-2-3" + torn}, names())
	require.ErrorContains(t, sink.Cancel(), "no space left")
	require.Empty(t, names())
}

// Where there is no room for another snapshot beside two, the older one goes; where there is, it stays.
func TestOlderSnapshotsMakeRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
	require.NoError(t, err)
	s := tidied(files, filepath.Join(dir, "snapshots"))
	left := uint64(1 << 40)
	s.free = func() uint64 { return left }
	_, transport := raft.NewInmemTransport("")
	take := func(index uint64) (seen []uint64) {
		sink, err := s.Create(1, index, 1, raft.Configuration{}, 1, transport)
		require.NoError(t, err)
		list, err := files.List()
		require.NoError(t, err)
		for _, m := range list {
			seen = append(seen, m.Index)
		}
		_, err = sink.Write(make([]byte, 1000))
		require.NoError(t, err)
		require.NoError(t, sink.Close())
		return seen
	}
	require.Empty(t, take(10))
	require.Equal(t, []uint64{10}, take(20))
	left = 1250
	require.Equal(t, []uint64{20, 10}, take(30))
	left--
	require.Equal(t, []uint64{30}, take(40), "20 made room")
	require.Equal(t, []uint64{40}, take(50))
}
