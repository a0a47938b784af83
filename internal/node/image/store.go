package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/clock"
)

// Options of a Store.
type Options struct {
	Dir       string // where images live; made if missing, mode 0700: layers have setuid programs in them
	Clock     clock.Clock
	Log       *slog.Logger
	Limits    Limits
	Transport http.RoundTripper // to registries; nil = the default
}

// Store keeps images. Its methods may be called at once.
type Store struct {
	opts    Options
	flights singleflight.Group
	// preparing is held for reading while layers come, for writing while they go.
	preparing sync.RWMutex

	mu        sync.Mutex
	host      *Rootfs                             // generated once; guarded by mu
	uses      map[string]int                      // sandboxes by digest; guarded by mu
	listeners map[string]map[*func(Progress)]bool // of pulls under way; guarded by mu
}

// NewStore returns a store on a directory. No I/O.
func NewStore(opts Options) *Store {
	return &Store{opts: opts, uses: map[string]int{}, listeners: map[string]map[*func(Progress)]bool{}}
}

// Request is an image to make ready.
type Request struct {
	Ref      string // "host", a registry reference, a path to an OCI layout or an archive
	Username string // "" = what ~/.docker/config.json says
	Password string
	// Pull asks the registry even if the image is there already.
	Pull bool
	// Progress, if set, is told that a pull began (zeroes), and as layers arrive; also of a pull that somebody else
	// waits for too. Not after Prepare returned.
	Progress func(Progress)
}

// Progress of a pull.
type Progress struct {
	Layers, LayersDone int
	Bytes              int64 // unpacked up to now
}

// Prepare makes an image ready; many waiters for one image cost one pull. Errors: Invalid (the reference cannot be
// one, the archive is bad), NotFound (no such image), Forbidden (the registry refuses), Unavailable (the network),
// TooLarge.
func (s *Store) Prepare(ctx context.Context, r Request) (*Rootfs, error) {
	switch r.Ref {
	case "":
		return nil, drover.Errorf(drover.Invalid, `no image: give "host", a reference like docker.io/library/python:3, or a path`)
	case Host:
		return s.prepareHost()
	}
	s.preparing.RLock()
	defer s.preparing.RUnlock()
	rec, err := s.fetchOnce(ctx, r)
	if err != nil {
		return nil, err
	}
	f, err := s.rootfs(rec)
	if err != nil {
		return nil, err
	}
	return s.hold(f), nil
}

func (s *Store) fetchOnce(ctx context.Context, r Request) (*record, error) {
	if !r.Pull {
		if rec, err := s.load(r.Ref); rec != nil || err != nil {
			return rec, err
		}
	}
	// The first waiter's context must not take the pull away from the others.
	key := "image " + r.Username + "\x00" + r.Ref
	defer s.listen(key, r.Progress)()
	results := s.flights.DoChan(key, func() (any, error) {
		return s.fetch(context.WithoutCancel(ctx), r, func(p Progress) { s.tell(key, p) })
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("image %s is still being pulled: %w", r.Ref, ctx.Err())
	case res := <-results:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*record), nil //nolint:forcetypeassert // fetch's type
	}
}

// fetch unpacks the missing layers, one after the other, and writes the record.
func (s *Store) fetch(ctx context.Context, r Request, tell func(Progress)) (*record, error) {
	s.preparing.RLock() // also when all waiters have gone away
	defer s.preparing.RUnlock()
	if _, err := name.ParseReference(r.Ref); err == nil || isPath(r.Ref) {
		tell(Progress{})
	}
	from := source(r.Ref) // before it is read: what changes meanwhile is read again next time
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return nil, err
	}
	img, done, err := s.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer done()
	rec, err := s.describe(img, r.Ref)
	if err != nil {
		return nil, remoteError(r.Ref, err)
	}
	rec.Source = from
	layers, err := img.Layers()
	if err != nil {
		return nil, remoteError(r.Ref, err)
	}
	progress := Progress{Layers: len(layers)}
	if len(layers) != len(rec.Layers) {
		return nil, drover.Errorf(drover.Invalid, "image %s: its manifest has %d layers, its configuration %d", r.Ref, len(layers), len(rec.Layers))
	}
	for i, l := range layers {
		err := s.layer(ctx, l, rec.Layers[i], func(n int64) { progress.Bytes += n; tell(progress) })
		if err != nil {
			return nil, s.layerError(r.Ref, err)
		}
		progress.LayersDone++
		tell(progress)
	}
	return rec, s.save(rec)
}

func (s *Store) layerError(ref string, err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return drover.Errorf(drover.Unavailable, "image %s: the disk of %s is full: %w", ref, s.opts.Dir, err)
	}
	if isPath(ref) && drover.CodeOf(err) == drover.Internal {
		return drover.Errorf(drover.Invalid, "image %s: %w", ref, err)
	}
	if drover.CodeOf(err) != drover.Internal {
		return drover.Errorf(drover.CodeOf(err), "image %s: %w", ref, err)
	}
	return remoteError(ref, err)
}

func (s *Store) describe(img v1.Image, ref string) (*record, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	rec := &record{Ref: ref, Digest: digest.String(), Config: Config{
		Env: file.Config.Env, Entrypoint: file.Config.Entrypoint, Cmd: file.Config.Cmd,
		WorkDir: file.Config.WorkingDir, User: file.Config.User,
	}}
	for _, d := range file.RootFS.DiffIDs {
		rec.Layers = append(rec.Layers, d.Hex)
	}
	if len(rec.Layers) > maxLayers {
		return nil, drover.Errorf(drover.TooLarge, "image %s has %d layers, at most %d can be used", ref, len(rec.Layers), maxLayers)
	}
	return rec, nil
}

func (s *Store) limits() Limits {
	l := s.opts.Limits
	if l.Bytes == 0 {
		l.Bytes = 20 << 30
	}
	if l.Files == 0 {
		l.Files = 2_000_000
	}
	return l
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
	return nil, drover.Errorf(drover.NotFound, "no %s in the image", name)
}

func fields(line string) []string { return strings.Split(strings.TrimRight(line, "\n"), ":") }
