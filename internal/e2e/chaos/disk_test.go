package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// diskBytes is the size of a server's disk, which is in memory. Half an hour of jobs, which are kept for hours, takes a third of it.
const diskBytes = "size=640m"

// mountDisk gives the server a disk of its own for all that it keeps.
func (h *host) mountDisk(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(h.data(), 0o700))
	require.NoError(t, unix.Mount("tmpfs", h.data(), "tmpfs", 0, diskBytes))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(h.data(), unix.MNT_DETACH)) })
}

func (h *host) data() string    { return filepath.Join(h.dir, "data") }
func (h *host) ballast() string { return filepath.Join(h.data(), "ballast") }

// fill writes until nothing more fits.
func (h *host) fill() error {
	f, err := os.Create(h.ballast())
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only there to be large
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	return err
}

// drain takes away what fill wrote.
func (h *host) drain() error {
	err := os.Remove(h.ballast())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// tear leaves the files of a server that was killed as a power cut in the midst of its next writes would. The log's root that
// was to be replaced is half written, and the journal of claims ends in the middle of a line.
func (h *host) tear() error {
	if err := tearLog(filepath.Join(h.data(), "server", "raft", "raft.db")); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.data(), "claims.journal"), os.O_APPEND|os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(`{"claim":{"all`)
	return errors.Join(err, f.Close())
}

// Where bbolt has the number of the last transaction in each of its two roots, which it writes in turn.
const rootTx, rootEnd = 16 + 48, 16 + 64

// tearLog spoils the older root, which the next transaction would have replaced.
func tearLog(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // written through
	page := int64(os.Getpagesize())
	var tx [2]uint64
	for i := range tx {
		var b [8]byte
		if _, err := f.ReadAt(b[:], int64(i)*page+rootTx); err != nil {
			return err
		}
		tx[i] = binary.LittleEndian.Uint64(b[:])
	}
	older := int64(0)
	if tx[1] < tx[0] {
		older = 1
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, rootEnd-rootTx), older*page+rootTx)
	return err
}

// TestATornLogHasItsLastTransaction: what was synced before the power went is there; it is only the next one that is torn.
func TestATornLogHasItsLastTransaction(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	for i := range byte(4) {
		db, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			require.NoError(t, err)
			for had := range i {
				require.NotNil(t, b.Get([]byte{had}))
			}
			return b.Put([]byte{i}, []byte{i})
		}))
		require.NoError(t, db.Close())
		require.NoError(t, tearLog(path))
	}
}
