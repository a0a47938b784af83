package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rotation"
)

// Identity is what a node proves itself with.
type Identity struct{ ID, Secret string }

// ReadIdentity reads {client-id,secret-id} of the state folder, and makes what is missing. New does it too; the link to
// control needs it earlier.
func ReadIdentity(cfg Config, ids id.Source) (Identity, error) {
	cfg = cfg.withDefaults()
	dir := cfg.StateDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Identity{}, fmt.Errorf("making the client's folder: %w", err)
	}
	if err := cfg.placeState(); err != nil {
		return Identity{}, err
	}
	var i Identity
	var err error
	if i.ID, err = readOrMake(filepath.Join(dir, "client-id"), cfg.NodeID, ids); err != nil {
		return i, err
	}
	i.Secret, err = readOrMake(filepath.Join(dir, "secret-id"), "", ids)
	return i, err
}

// placeState remembers in the data folder where the state is, and refuses to begin with none where there is one elsewhere: as another
// node the agent would end what runs. Errors: Invalid.
func (c Config) placeState() error {
	usual, record := filepath.Join(c.DataDir, "client"), filepath.Join(c.DataDir, "state-dir")
	before := usual
	text, err := os.ReadFile(record)
	if err == nil {
		before = strings.TrimSpace(string(text))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading where the node's state is: %w", err)
	}
	if before == c.StateDir {
		return nil
	}
	was, err := os.ReadFile(filepath.Join(before, "client-id"))
	if err == nil {
		var is []byte
		if is, err = os.ReadFile(filepath.Join(c.StateDir, "client-id")); err == nil && !bytes.Equal(was, is) {
			return drover.Errorf(drover.Invalid, "client.state_dir: the state in %[2]s is another node's, and that of this node is in %[1]s: as "+
				"another node it would end what runs; name another folder, or remove %[1]s to go on as the other", before, c.StateDir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return drover.Errorf(drover.Invalid, "client.state_dir: there is no state in %[2]s, and that of this node is in %[1]s: as another "+
				"node it would end what runs; copy it (cp -a %[1]s/. %[2]s/), or remove %[1]s to begin anew", before, c.StateDir)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for the node's state: %w", err)
	}
	return rotation.WriteFile(record, []byte(c.StateDir))
}

// startBits is how many bits of a report's order count the reports of one start of the agent.
const startBits = 40

// countStart returns how often an agent has opened the folder, with this time, as the file "starts" says. Who lost the file begins
// anew, and then learns from control how far it was.
func countStart(cfg Config) (uint64, error) {
	path := filepath.Join(cfg.StateDir, "starts")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("reading how often the node was started: %w", err)
	}
	before, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64-startBits) // damaged is lost
	return before + 1, rotation.WriteFile(path, strconv.AppendUint(nil, before+1, 10))
}

// readOrMake returns the id in the file. wanted, if given, replaces it.
func readOrMake(path, wanted string, ids id.Source) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the node's identity: %w", err)
	}
	found := strings.TrimSpace(string(data))
	if wanted == "" && id.Valid(found) {
		return found, nil
	}
	if err == nil && wanted == "" {
		return "", fmt.Errorf("the node's identity in %s is not a UUID; repair or remove the file", path)
	}
	if wanted == found && found != "" {
		return found, nil
	}
	if wanted == "" {
		wanted = ids.New()
	}
	return wanted, rotation.WriteFile(path, []byte(wanted)) // a node that forgot its secret could not register again
}
