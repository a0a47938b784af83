package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/id"
)

// Identity is what a node proves itself with.
type Identity struct{ ID, Secret string }

// ReadIdentity reads <data>/client/{client-id,secret-id}, and makes what is missing. New does it too; the link to
// control needs it earlier.
func ReadIdentity(cfg Config, ids id.Source) (Identity, error) {
	dir := filepath.Join(cfg.DataDir, "client")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Identity{}, fmt.Errorf("making the client's folder: %w", err)
	}
	var i Identity
	var err error
	if i.ID, err = readOrMake(filepath.Join(dir, "client-id"), cfg.NodeID, ids); err != nil {
		return i, err
	}
	i.Secret, err = readOrMake(filepath.Join(dir, "secret-id"), "", ids)
	return i, err
}

// startBits is how many bits of a report's order count the reports of one start of the agent.
const startBits = 40

// countStart returns how often an agent has opened the folder, with this time, as <data>/client/starts says. Who lost the file begins
// anew, and then learns from control how far it was.
func countStart(cfg Config) (uint64, error) {
	path := filepath.Join(cfg.DataDir, "client", "starts")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("reading how often the node was started: %w", err)
	}
	before, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64-startBits) // damaged is lost
	return before + 1, writeDurably(path, strconv.FormatUint(before+1, 10))
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
	return wanted, writeDurably(path, wanted)
}

// writeDurably replaces the file and waits for the disk. A node that forgot its secret could not register again under
// its id.
func writeDurably(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		if syncErr := f.Sync(); err == nil {
			err = syncErr
		}
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
