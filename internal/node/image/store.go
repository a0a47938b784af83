package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/clock"
)

// Options of a Store.
type Options struct {
	Dir   string // where images live; made if missing
	Clock clock.Clock
	Log   *slog.Logger
}

// Store keeps images. Its methods may be called at once.
type Store struct {
	opts Options

	mu   sync.Mutex
	host *Rootfs // generated once
}

// NewStore returns a store on a directory. No I/O.
func NewStore(opts Options) *Store { return &Store{opts: opts} }

// Request is an image to make ready.
type Request struct{ Ref string }

// Prepare makes an image ready; many waiters for one image cost one pull. Errors: Invalid (the reference cannot be
// one, the archive is bad), NotFound (no such image), Unavailable (the network), Unauthorized, TooLarge.
func (s *Store) Prepare(ctx context.Context, r Request) (*Rootfs, error) {
	switch {
	case r.Ref == "":
		return nil, drover.Errorf(drover.Invalid, `no image: give "host", a reference like docker.io/library/python:3, or a path`)
	case r.Ref == Host:
		return s.prepareHost()
	}
	return nil, drover.Errorf(drover.NotImplemented, "image %q: only \"host\" can be used up to now", r.Ref)
}

func (s *Store) prepareHost() (*Rootfs, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host == nil {
		host, err := prepareHost(filepath.Join(s.opts.Dir, "host"))
		if err != nil {
			return nil, err
		}
		s.host = host
	}
	r := *s.host
	return &r, nil
}

func isNotEmpty(err error) bool { return errors.Is(err, unix.ENOTEMPTY) }

// LookupUser finds a user in the image's own passwd and group: "name", "uid", "uid:gid" or "name:group". "" is root.
// Errors: Invalid, naming the user.
func (r *Rootfs) LookupUser(spec string) (uid, gid uint32, groups []uint32, err error) {
	return lookupUser(r, spec)
}

func readInLowers(lowers []string, name string) ([]byte, error) {
	for _, l := range lowers {
		root, err := os.OpenRoot(l) // the image's links cannot lead us out of it
		if err != nil {
			return nil, err
		}
		data, err := root.ReadFile(name)
		_ = root.Close()
		if err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("no %s in the image", name)
}

func fields(line string) []string { return strings.Split(strings.TrimRight(line, "\n"), ":") }
