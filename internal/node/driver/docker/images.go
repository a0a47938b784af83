package docker

import (
	"context"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
)

// imageInfo is what of an image matters to a start.
type imageInfo struct {
	id         string
	ref        string // by which this driver got it, so that it may be removed; "" = others did
	user       string
	workDir    string
	entrypoint []string
	cmd        []string
	env        []string
	stopSignal string
}

// images gets images, counts who uses them, and removes those that it got itself some time after the last use.
type images struct {
	d *Driver

	mu     sync.Mutex
	pulls  map[string]*pull       // under way, by reference and account; guarded by mu
	users  map[string]int         // by image id; guarded by mu
	ours   map[string][]string    // the references that we got, by image id; guarded by mu
	timers map[string]clock.Timer // of images without users; guarded by mu
	closed bool                   // guarded by mu

	recalled bool // ours has what the file says; guarded by mu
}

func newImages(d *Driver) *images {
	return &images{d: d, pulls: map[string]*pull{}, users: map[string]int{}, ours: map[string][]string{}, timers: map[string]clock.Timer{}}
}

// get has the image on the machine, and holds it until release. Errors: NotFound, Forbidden and Invalid are final.
func (s *images) get(ctx context.Context, spec *driver.Spec, c taskConfig) (imageInfo, error) {
	info, err := s.find(ctx, c.image)
	switch {
	case c.load != "":
		spec.Say("Loading image from " + c.load)
		info, err = s.load(ctx, spec, c)
	case err == nil && !c.forcePull && (spec.Pool || !latest(c.image)):
	case err == nil && !c.forcePull: // as in Nomad, but what is here serves where there is no registry
		newer, pullErr := s.pull(ctx, spec, c)
		if pullErr != nil {
			s.d.cfg.Log.Warn("using the image that is here", "image", c.image, "error", pullErr)
			break
		}
		info = newer
	case err == nil || drover.CodeOf(err) == drover.NotFound:
		info, err = s.pull(ctx, spec, c)
	}
	if err != nil {
		return imageInfo{}, err
	}
	s.hold(&info)
	return info, nil
}

// latest tells whether a reference moves: its tag is latest, or it has none.
func latest(ref string) bool {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	_, tag, tagged := strings.Cut(name, ":")
	return !strings.Contains(ref, "@") && (!tagged || tag == "latest")
}

// find inspects an image that is there. Errors: NotFound.
func (s *images) find(ctx context.Context, ref string) (imageInfo, error) {
	r, err := s.d.docker.ImageInspect(ctx, ref)
	if err != nil {
		if cerrdefs.IsInvalidArgument(err) {
			return imageInfo{}, drover.Errorf(drover.Invalid, "image %q: %w", ref, err)
		}
		return imageInfo{}, daemonError(err)
	}
	info := imageInfo{id: r.ID}
	if c := r.Config; c != nil {
		info.user, info.workDir, info.entrypoint, info.cmd, info.env, info.stopSignal = c.User, c.WorkingDir, c.Entrypoint, c.Cmd, c.Env, c.StopSignal
	}
	return info, nil
}

func (s *images) hold(info *imageInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall()
	s.users[info.id]++
	if info.ref != "" && !slices.Contains(s.ours[info.id], info.ref) {
		s.ours[info.id] = append(s.ours[info.id], info.ref)
		s.keep()
	}
	if got := s.ours[info.id]; info.ref == "" && len(got) > 0 {
		info.ref = got[0]
	}
	if t := s.timers[info.id]; t != nil {
		t.Stop()
		delete(s.timers, info.id)
	}
}

// release lets an image go. One that we got goes away after the delay, unless somebody takes it again.
func (s *images) release(id string) {
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
func (s *images) remove(id string) {
	s.mu.Lock()
	if s.users[id] > 0 || s.timers[id] == nil {
		s.mu.Unlock()
		return
	}
	refs := s.ours[id]
	delete(s.timers, id)
	delete(s.ours, id)
	s.mu.Unlock()
	ctx, cancel := s.d.cfg.Clock.WithTimeout(context.Background(), s.d.cfg.PullQuiet) //nolint:forbidigo // nobody waits for it
	defer cancel()
	err := s.discard(ctx, id, refs)
	if err != nil {
		s.d.cfg.Log.Info("an image that no task uses stays", "image", id, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !cerrdefs.IsConflict(err) {
		s.ours[id] = append(s.ours[id], refs...) // the daemon is away: the next sweep tries again
	}
	s.keep()
}

// discard takes our names from an image, which goes with its last one, and removes one that has none: its name moved on.
func (s *images) discard(ctx context.Context, id string, refs []string) error {
	gone := func(name string) error {
		_, err := s.d.docker.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		return err
	}
	for _, ref := range refs {
		info, err := s.d.docker.ImageInspect(ctx, ref)
		if err == nil && info.ID == id {
			err = gone(ref)
		}
		if err != nil && !cerrdefs.IsNotFound(err) {
			return err
		}
	}
	left, err := s.d.docker.ImageInspect(ctx, id)
	if cerrdefs.IsNotFound(err) || err == nil && len(left.RepoTags) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return gone(id)
}

func (s *images) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for id, t := range s.timers {
		t.Stop()
		delete(s.timers, id)
	}
}
