package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// record is what is remembered of an image that was unpacked, so that it can be used again without its source.
type record struct {
	Ref    string   `json:"ref"`
	Digest string   `json:"digest"`
	Layers []string `json:"layers"` // diff ids, the lowest first
	Config Config   `json:"config"`
	// Source tells whether what lies at a path, or in a docker daemon, is still the same; "" of what came from a registry.
	Source string `json:"source,omitempty"`
}

// source describes the layout or archive at a path; "" if there is none.
func source(ref string) string {
	if !isPath(ref) {
		return ""
	}
	var st unix.Stat_t
	if unix.Stat(filepath.Join(ref, "index.json"), &st) != nil && unix.Stat(ref, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

// recordPath is the file of an image's record. A reference may hold slashes and be long, so half of its SHA-256 is the
// file's name.
func (s *Store) recordPath(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return filepath.Join(s.opts.Dir, "images", hex.EncodeToString(sum[:16])+".json")
}

// load returns the record if the image is complete, else nil.
func (s *Store) load(ref string) (*record, error) {
	path := s.recordPath(ref)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // not there is an answer
	}
	if err != nil {
		return nil, err
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Ref != ref || !strings.HasPrefix(r.Source, fromLocal) && r.Source != source(ref) {
		return nil, nil //nolint:nilerr // damaged, or something else by now: fetch it again
	}
	for _, l := range r.Layers {
		if _, err := os.Stat(s.layerDir(l)); err != nil {
			return nil, nil //nolint:nilerr // incomplete: fetch it again
		}
	}
	now := s.opts.Clock.Now()
	_ = os.Chtimes(path, time.Time{}, now) // when it was last used, for Collect
	return &r, nil
}

// save writes the record by renaming, so that load never sees half of one. It comes after the layers: a record stands
// for a whole image.
func (s *Store) save(r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := s.recordPath(r.Ref)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// rootfs makes a record usable.
func (s *Store) rootfs(r *record) (*Rootfs, error) {
	base, err := prepareBase(s.opts.Dir)
	if err != nil {
		return nil, err
	}
	if len(r.Layers) > maxLayers {
		return nil, drover.Errorf(drover.TooLarge, "image %s has %d layers, at most %d can be used", r.Ref, len(r.Layers), maxLayers)
	}
	f := &Rootfs{Ref: r.Ref, Digest: r.Digest, Lowers: []string{base}, Config: r.Config}
	for i := len(r.Layers) - 1; i >= 0; i-- {
		f.Lowers = append(f.Lowers, s.layerDir(r.Layers[i]))
	}
	return f, nil
}

// maxLayers is what fits into one message of descriptors and one overlay.
const maxLayers = 120
