package images

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/internal/registry"
)

// Image is what of an image matters to a start.
type Image struct {
	ID         string
	Ref        string // by which this service got it, so that it may be removed; "" = others did
	User       string
	WorkDir    string
	Entrypoint []string
	Cmd        []string
	Env        []string
	StopSignal string
}

// Request says which image a task wants, and how.
type Request struct {
	Ref             string // its name
	Load            string // an archive in the task's folder that it comes from; "" = a registry
	ForcePull       bool
	PullTimeout     time.Duration // 0 = none
	Account         Account
	AccountOptional bool // an account that is not known or not taken is no reason to fail
}

// Account is one at a registry; the zero value is none.
type Account struct{ Username, Password, Token, Server string }

// Config of a service.
type Config struct {
	Docker *client.Client
	Name   string // of the driver: of the files in which the agent's data folder tells what we got
	Owner  string // the agent's data folder: it marks archives as ours, and holds the file of the images that we got
	Clock  clock.Clock
	Log    *slog.Logger
	// AuthConfig is a docker config.json with accounts of registries; AuthHelper, X, names a docker-credential-X.
	AuthConfig, AuthHelper string
	// Delay is how long an image that we got stays after its last use; negative = forever.
	Delay time.Duration
	// PullQuiet ends a pull that makes no progress.
	PullQuiet time.Duration
}

// Cache gets images, counts who uses them, and removes those that it got itself some time after the last use. Its
// methods may be called at once.
type Cache struct {
	cfg    Config
	signed *registry.Client

	mu     sync.Mutex
	pulls  map[string]*pull       // under way, by reference and account; guarded by mu
	users  map[string]int         // by image id; guarded by mu
	ours   map[string][]string    // the references that we got, by image id; guarded by mu
	timers map[string]clock.Timer // of images without users; guarded by mu
	closed bool                   // guarded by mu

	recalled bool // ours has what the file says; guarded by mu
}

// New returns a cache without I/O.
func New(cfg Config) *Cache {
	signed := registry.Config{Clock: cfg.Clock, File: filepath.Join(cfg.Owner, cfg.Name+"-signed.json")}
	return &Cache{
		cfg: cfg, signed: registry.New(signed), pulls: map[string]*pull{}, users: map[string]int{},
		ours: map[string][]string{}, timers: map[string]clock.Timer{},
	}
}

// Get has the image on the machine, and holds it until release. Where it has to be signed, it is the one of the digest that was signed.
// Errors: NotFound, Forbidden and Invalid are final.
func (s *Cache) Get(ctx context.Context, spec *driver.Spec, c Request) (Image, error) {
	if len(spec.SignedBy) > 0 {
		var err error
		if c, err = s.verified(ctx, spec, c); err != nil {
			return Image{}, err
		}
	}
	info, err := s.Find(ctx, c.Ref)
	switch {
	case c.Load != "":
		spec.Say("Loading image from " + c.Load)
		info, err = s.load(ctx, spec, c)
	// A warm runner takes what is here: it has to start fast, and must not depend on a registry.
	case err == nil && !c.ForcePull && (spec.Pool || !latest(c.Ref)):
	case err == nil && !c.ForcePull: // as in Nomad, but what is here serves where there is no registry
		newer, pullErr := s.pull(ctx, spec, c)
		if pullErr != nil {
			s.cfg.Log.Warn("using the image that is here", "image", c.Ref, "error", pullErr)
			break
		}
		info = newer
	case err == nil || drover.CodeOf(err) == drover.NotFound:
		info, err = s.pull(ctx, spec, c)
	}
	if err != nil {
		return Image{}, err
	}
	s.Hold(&info)
	return info, nil
}

// latest tells whether a reference moves: its tag is latest, or it has none.
func latest(ref string) bool {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	return !strings.Contains(ref, "@") && (!tagged || tag == "latest")
}

// Find inspects an image that is there. Errors: NotFound.
func (s *Cache) Find(ctx context.Context, ref string) (Image, error) {
	r, err := s.cfg.Docker.ImageInspect(ctx, ref)
	if err != nil {
		if cerrdefs.IsInvalidArgument(err) {
			return Image{}, drover.Errorf(drover.Invalid, "image %q: %w", ref, err)
		}
		return Image{}, dockererr.Of(err)
	}
	info := Image{ID: r.ID}
	if c := r.Config; c != nil {
		info.User, info.WorkDir, info.StopSignal = c.User, c.WorkingDir, c.StopSignal
		info.Entrypoint, info.Cmd, info.Env = c.Entrypoint, c.Cmd, c.Env
	}
	return info, nil
}

// Hold counts one more user of an image, until Release.
func (s *Cache) Hold(info *Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall()
	s.users[info.ID]++
	if info.Ref != "" && !slices.Contains(s.ours[info.ID], info.Ref) {
		s.ours[info.ID] = append(s.ours[info.ID], info.Ref)
		s.keep()
	}
	if got := s.ours[info.ID]; info.Ref == "" && len(got) > 0 {
		info.Ref = got[0]
	}
	if t := s.timers[info.ID]; t != nil {
		t.Stop()
		delete(s.timers, info.ID)
	}
}

// Release lets an image go. One that we got goes away after the delay, unless somebody takes it again.
func (s *Cache) Release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[id]--
	if s.users[id] > 0 {
		return
	}
	delete(s.users, id)
	if len(s.ours[id]) > 0 {
		s.expire(id)
	}
}

// remove removes an image that nobody took meanwhile. What others made of it, a tag or a container, keeps it.
func (s *Cache) remove(id string) {
	s.mu.Lock()
	if s.users[id] > 0 || s.timers[id] == nil {
		s.mu.Unlock()
		return
	}
	refs := s.ours[id]
	delete(s.timers, id)
	delete(s.ours, id)
	s.mu.Unlock()
	ctx, cancel := s.cfg.Clock.WithTimeout(context.Background(), s.cfg.PullQuiet) //nolint:forbidigo // nobody waits for it
	defer cancel()
	err := s.discard(ctx, id, refs)
	if err != nil {
		s.cfg.Log.Info("an image that no task uses stays", "image", id, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !cerrdefs.IsConflict(err) {
		s.ours[id] = append(s.ours[id], refs...) // the daemon is away: the next sweep tries again
	}
	s.keep()
}

// discard takes our names from an image, which goes with its last one, and removes one that has none: its name moved on.
func (s *Cache) discard(ctx context.Context, id string, refs []string) error {
	// Removing a name removes the image only with its last name, and never by force: a container may use it.
	gone := func(name string) error {
		_, err := s.cfg.Docker.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	}
	for _, ref := range refs {
		// A name that means another image by now is not taken away.
		info, err := s.cfg.Docker.ImageInspect(ctx, ref)
		if err == nil && info.ID == id {
			err = gone(ref)
		}
		if err != nil && !cerrdefs.IsNotFound(err) {
			return err
		}
	}
	left, err := s.cfg.Docker.ImageInspect(ctx, id)
	if cerrdefs.IsNotFound(err) || err == nil && len(left.RepoTags) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return gone(id)
}

// Close stops the timers of removals. Images stay.
func (s *Cache) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for id, t := range s.timers {
		t.Stop()
		delete(s.timers, id)
	}
}
