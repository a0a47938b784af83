package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/rotation"
)

// signers are the keys that may have signed images, by namespace, as control said last. They are kept: what starts after a restart of the
// agent while no server answers obeys them, too.
type signers struct {
	path string // "" keeps nothing
	keys atomic.Pointer[map[string][]string]
}

// open reads what was kept. Errors: those of the file, also if it is damaged.
func (s *signers) open(cfg Config) error {
	s.keys.Store(&map[string][]string{})
	if cfg.InMemory {
		return nil
	}
	s.path = filepath.Join(cfg.StateDir, "image-signers.json")
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept := map[string][]string{}
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		return fmt.Errorf("reading which images have to be signed from %s: %w", s.path, err)
	}
	s.keys.Store(&kept)
	return nil
}

// take takes what control says, if it says anything of signatures. Errors: as set.
func (s *signers) take(a exchange.Assignment) error {
	if !a.Signers && len(a.SignedBy) == 0 { // an older server, in a cluster whose programs are being replaced
		return nil
	}
	return s.set(a.SignedBy)
}

// set takes what control says. Errors: those of the file; it holds all the same.
func (s *signers) set(keys map[string][]string) error {
	if maps.EqualFunc(*s.keys.Load(), keys, slices.Equal) {
		return nil
	}
	s.keys.Store(&keys)
	if s.path == "" {
		return nil
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	return rotation.WriteFile(s.path, text)
}

// of are the keys of a namespace; none: its images need not be signed.
func (s *signers) of(namespace string) []string { return (*s.keys.Load())[namespace] }
