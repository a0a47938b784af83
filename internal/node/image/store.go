package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/registry"
)

// Options of a Store.
type Options struct {
	Dir       string // where images live; made if missing, mode 0700: layers have setuid programs in them
	Clock     clock.Clock
	Log       *slog.Logger
	Limits    Limits
	Transport http.RoundTripper // to registries; nil = the default
	// Local is asked for what no registry gives, and need not be signed; nil = nobody.
	Local Local
	// Quiet ends a pull that makes no progress; default 2 minutes.
	Quiet time.Duration
}

// Store keeps images. Its methods may be called at once.
type Store struct {
	opts   Options
	signed *registry.Client
	layers singleflight.Group // by their digests
	// preparing is held for reading while layers come, for writing while they go.
	preparing sync.RWMutex

	mu      sync.Mutex
	host    *Rootfs            // generated once; guarded by mu
	chroots map[string]chroot  // by their trees; guarded by mu
	uses    map[string]int     // sandboxes by digest; guarded by mu
	flights map[string]*flight // by reference and account; guarded by mu
}

// NewStore returns a store on a directory. No I/O.
func NewStore(opts Options) *Store {
	signed := registry.Config{Clock: opts.Clock, Transport: opts.Transport, File: filepath.Join(opts.Dir, "signed.json")}
	return &Store{
		opts: opts, signed: registry.New(signed), chroots: map[string]chroot{}, uses: map[string]int{}, flights: map[string]*flight{},
	}
}

// Request is an image to make ready.
type Request struct {
	Ref      string // "host", a registry reference, a path to an OCI layout or an archive
	Username string // "" = what ~/.docker/config.json says
	Password string
	// SignedBy are public keys in PEM of which one must have signed the image, as Namespace asks. "host" needs no signature.
	SignedBy  []string
	Namespace string
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

// Prepare makes an image ready; many waiters for one image cost one pull, which ends with the last of them. Where a signature is asked
// for, what is unpacked has the digest that was signed. Errors: Invalid (the reference cannot be one, the archive is bad), NotFound (no
// such image), Forbidden (the registry refuses, or nobody signed it who may), Unavailable (the network), TooLarge.
func (s *Store) Prepare(ctx context.Context, r Request) (*Rootfs, error) {
	switch r.Ref {
	case "":
		return nil, drover.Errorf(drover.Invalid, `no image: give "host", a reference like docker.io/library/python:3, or a path`)
	case Host:
		return s.prepareHost()
	}
	if len(r.SignedBy) > 0 {
		var err error
		if r, err = s.verified(ctx, r); err != nil {
			return nil, err
		}
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

// fetchOnce returns the record of a complete image, or fetches it. With Pull set it always asks the source again.
func (s *Store) fetchOnce(ctx context.Context, r Request) (*record, error) {
	if !r.Pull {
		rec, err := s.load(r.Ref)
		if err != nil || rec != nil && (rec.Source == "" || len(r.SignedBy) == 0 && !s.moved(ctx, rec)) {
			return rec, err
		}
	}
	return s.join(ctx, &r)
}

// defaultQuiet is long enough for a slow registry and short enough that a task's start does not hang unnoticed.
const defaultQuiet = 2 * time.Minute

// quiet is how long a source may send nothing before the pull ends.
func (s *Store) quiet() time.Duration { return cmp.Or(s.opts.Quiet, defaultQuiet) }

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
	img, err := s.find(ctx, r)
	if err != nil {
		return nil, err
	}
	defer img.close() //nolint:errcheck // it was only read
	rec, err := describe(img, r.Ref)
	if err != nil {
		return nil, err
	}
	rec.Source = cmp.Or(img.source, from)
	progress, limits := Progress{Layers: len(img.layers)}, s.limits()
	for i := range img.layers {
		err := s.tries(ctx, img, i, rec.Layers[i], limits.less(progress.Bytes), func(n int64) { progress.Bytes += n; tell(progress) })
		if err != nil {
			return nil, s.layerError(ctx, r.Ref, img.source != "" || isPath(r.Ref), err)
		}
		progress.LayersDone++
		tell(progress)
	}
	return rec, s.save(rec)
}

// find opens the image from the registry. If no registry gives it, it takes what this machine's docker daemon has by
// that name.
func (s *Store) find(ctx context.Context, r Request) (*opened, error) {
	if isPath(r.Ref) {
		return s.open(ctx, r)
	}
	patience := s.quiet()
	if len(r.SignedBy) > 0 {
		return s.ask(ctx, r, patience)
	}
	id := s.localID(ctx, r.Ref)
	if id != "" {
		patience = min(patience, nearby)
	}
	img, err := s.ask(ctx, r, patience)
	if err != nil {
		return s.findLocal(ctx, id, err)
	}
	return img, nil
}

// ask asks the registry; one that says nothing is not waited for forever.
func (s *Store) ask(ctx context.Context, r Request, patience time.Duration) (*opened, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	quiet := s.opts.Clock.AfterFunc(patience, func() { cancel(errQuiet) })
	img, err := s.open(waiting, r)
	if !quiet.Stop() && err == nil {
		err = errQuiet
	}
	switch {
	case err == nil: // its layers are read by that context
		img.close = func() error { cancel(nil); return nil }
		return img, nil
	case errors.Is(context.Cause(waiting), errQuiet):
		err = drover.Errorf(drover.Unavailable, "image %s: %w", r.Ref, errQuiet)
	}
	cancel(nil)
	return nil, err
}

// errQuiet is the cause of a pull that ended because no bytes came for as long as quiet says.
var errQuiet = errors.New("the registry sends nothing any more") // a constant error

// layerError turns the failure of one layer into the error that Prepare promises. The order matters: the end of the
// context and a full disk also show as broken reads. onDisk says that the source is a path or a daemon, and no registry
// is to blame.
func (s *Store) layerError(ctx context.Context, ref string, onDisk bool, err error) error {
	broken := (*brokenError)(nil)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("pulling image %s: %w", ref, context.Cause(ctx))
	case diskFull(err):
		return drover.Errorf(drover.Unavailable, "image %s: the disk of %s is full: %w", ref, s.opts.Dir, err)
	case onDisk:
		return pathError(ref, err)
	case errors.As(err, &broken):
		return drover.Errorf(drover.Unavailable, "image %s: it broke off on its way from the registry: %w", ref, err)
	}
	return registry.Error(ref, err)
}

// describe makes the record of an opened image. It refuses an image whose manifest and configuration disagree on the
// layers, because the two lists are used by position. Errors: TooLarge, Invalid.
func describe(img *opened, ref string) (*record, error) {
	c := img.config.Config
	rec := &record{Ref: ref, Digest: img.digest, Config: Config{
		Env: c.Env, Entrypoint: c.Entrypoint, Cmd: c.Cmd, WorkDir: c.WorkingDir, User: c.User,
	}}
	for _, d := range img.config.RootFS.DiffIDs {
		rec.Layers = append(rec.Layers, d.Hex)
	}
	if len(rec.Layers) > maxLayers {
		return nil, drover.Errorf(drover.TooLarge, "image %s has %d layers, at most %d can be used", ref, len(rec.Layers), maxLayers)
	}
	if len(img.layers) != len(rec.Layers) {
		return nil, drover.Errorf(
			drover.Invalid, "image %s: its manifest has %d layers, its configuration %d", ref, len(img.layers), len(rec.Layers),
		)
	}
	return rec, nil
}

// defaultBytes is how large an image may be unless the options say otherwise.
const defaultBytes = 20 << 30

// limits returns the configured limits with the defaults in place of zeros.
func (s *Store) limits() Limits {
	l := s.opts.Limits
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Files == 0 {
		l.Files = 2_000_000
	}
	return l
}

// prepareHost returns a copy of the host image, which is generated once in the life of the agent. Nothing collects it,
// so its Release does nothing.
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

// isNotEmpty reports whether a rename met a directory with something in it: somebody else put the same one there first.
func isNotEmpty(err error) bool { return errors.Is(err, unix.ENOTEMPTY) }

// LookupUser finds a user in the image's own passwd and group: "name", "uid", "uid:gid" or "name:group". "" is root.
// Errors: Invalid, naming the user.
func (r *Rootfs) LookupUser(spec string) (uid, gid uint32, groups []uint32, err error) {
	return lookupUser(r, spec)
}

// readInLowers reads a file as the overlay would show it, except that deletions in upper layers are not honoured. The
// first directory that has the file wins. Errors: NotFound.
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

// fields splits a line of passwd or group.
func fields(line string) []string { return strings.Split(strings.TrimRight(line, "\n"), ":") }
