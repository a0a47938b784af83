package groupnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/network"
)

// record is what is written about a namespace before anything of it is made.
type record struct {
	// Pending is one that is not yet what the record says: with the agent's end here, it is made anew.
	Pending   bool                  `json:"pending,omitempty"`
	Address   string                `json:"address,omitempty"` // on the bridge
	IPv6      bool                  `json:"ipv6,omitempty"`    // it has one of IPv6 there, too
	CNI       *cni.Attachment       `json:"cni,omitempty"`     // in a network of the administrator's, in place of the bridge
	Ports     []network.PortMapping `json:"ports,omitempty"`
	Container bool                  `json:"container,omitempty"` // a container holds it
	Hostname  string                `json:"hostname,omitempty"`  // of that container
}

const suffix = ".json"

// path is where an allocation's namespace is mounted, so that it stays while no process is in it. Its record lies beside
// it.
func (n *Networks) path(allocID string) string { return filepath.Join(n.cfg.Dir, allocID) }

// write replaces the record in one step. It comes before the namespace, so that a restarted agent finds all that was
// begun.
func (n *Networks) write(allocID string, r record) error {
	if err := os.MkdirAll(n.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of network namespaces: %w", err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file := n.path(allocID) + suffix
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return fmt.Errorf("writing down a network namespace: %w", err)
	}
	return os.Rename(file+".new", file)
}

// read returns all records by allocation.
func (n *Networks) read() (map[string]record, error) {
	entries, err := os.ReadDir(n.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for network namespaces: %w", err)
	}
	out := map[string]record{}
	var errs []error
	for _, e := range entries {
		allocID, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || !id.Valid(allocID) {
			continue
		}
		var r record
		text, err := os.ReadFile(n.path(allocID) + suffix)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the network namespace of allocation %s: %w", allocID, err))
			continue
		}
		out[allocID] = r
	}
	return out, errors.Join(errs...)
}
