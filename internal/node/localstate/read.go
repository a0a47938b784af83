package localstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Print writes what a file has as JSON: the records, by the ids of their allocations. It changes nothing. Warm runners are not in the
// file. Errors: those of the file, also if an agent uses it.
func Print(path string, w io.Writer) error {
	records, err := read(path)
	if err != nil {
		return err
	}
	allocs := map[string]Record{}
	for _, r := range records {
		allocs[r.Alloc.ID] = r
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	return e.Encode(map[string]any{"Allocations": allocs})
}

// read reads a file's records without changing it.
func read(path string) ([]Record, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("opening the local state %s: an agent uses it; stop the agent first", path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the local state %s: %w", path, err)
	}
	defer func() { _ = db.Close() }() // it was only read
	entries := map[string][]byte{}
	err = db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket(bucketName) == nil {
			return errors.New("it is none of ours")
		}
		return tx.Bucket(bucketName).ForEach(func(k, v []byte) error {
			entries[string(k)] = append([]byte(nil), v...)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the local state %s: %w", path, err)
	}
	return newJobs(newFormat()).assemble(entries)
}
