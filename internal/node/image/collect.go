package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Hold marks an image as used by a sandbox which an earlier agent started. Release it like a prepared one.
func (s *Store) Hold(ref, digest string) *Rootfs {
	return s.hold(&Rootfs{Ref: ref, Digest: digest})
}

// hold counts one more user of the image's digest, which keeps Collect from removing it, and sets the function that
// Release calls. Counts live in memory only: after a restart the agent calls Hold for each sandbox that it finds again.
func (s *Store) hold(r *Rootfs) *Rootfs {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses[r.Digest]++
	r.release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses[r.Digest]--; s.uses[r.Digest] <= 0 {
			delete(s.uses, r.Digest)
		}
	}
	return r
}

// Collect removes images that no sandbox uses and that nobody asked for during keep, and layers that no image has. It
// returns the references removed. While an image is being prepared it does nothing: the next round will.
func (s *Store) Collect(ctx context.Context, keep time.Duration) ([]string, error) {
	if !s.preparing.TryLock() { // never waits, so that it never makes a start wait
		return nil, nil
	}
	defer s.preparing.Unlock()
	files, err := filepath.Glob(filepath.Join(s.opts.Dir, "images", "*.json"))
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	needed := map[string]bool{}
	oldest := s.opts.Clock.Now().Add(-keep)
	for _, f := range files {
		r, used, err := s.readRecord(f)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if s.inUse(r.Digest) || used.After(oldest) {
			for _, l := range r.Layers {
				needed[l] = true
			}
			continue
		}
		if err := os.Remove(f); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, r.Ref)
	}
	if len(errs) == 0 { // else we do not know which layers are needed
		errs = append(errs, s.removeLayers(ctx, needed))
	}
	return removed, errors.Join(errs...)
}

// readRecord returns a record and the time of its last use, which load keeps as the file's modification time. A damaged
// record comes back empty with a zero time and no error, so that Collect treats it as old and removes it.
func (s *Store) readRecord(path string) (record, time.Time, error) {
	var r record
	info, err := os.Stat(path)
	if err != nil {
		return r, time.Time{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, time.Time{}, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, time.Time{}, nil //nolint:nilerr // damaged: it goes
	}
	return r, info.ModTime(), nil
}

// inUse reports whether any sandbox holds an image with this digest.
func (s *Store) inUse(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses[digest] > 0
}

// removeLayers deletes the layers that are not in needed, by their directory names, and the remains of interrupted
// unpackings. The caller holds preparing for writing: without that, a layer could be removed between its unpacking and
// its record.
func (s *Store) removeLayers(ctx context.Context, needed map[string]bool) error {
	dir := filepath.Join(s.opts.Dir, "layers")
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		name := e.Name()
		if needed[name] {
			continue
		}
		path := filepath.Join(dir, name)
		if !strings.HasPrefix(name, ".") { // out of sight first: half a layer must never look whole
			hidden := filepath.Join(dir, ".old-"+name)
			if err := os.Rename(path, hidden); err != nil {
				return fmt.Errorf("removing a layer: %w", err)
			}
			path = hidden
		}
		if err := removeTree(path); err != nil {
			return fmt.Errorf("removing a layer: %w", err)
		}
	}
	return nil
}
