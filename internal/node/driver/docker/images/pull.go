package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// pull is one that is under way, and those who wait for it.
type pull struct {
	done    chan struct{}
	waiters map[*driver.Spec]bool // guarded by images.mu
	cancel  context.CancelFunc    // when the last one has gone
	info    Image                 // set before done is closed
	err     error                 // set before done is closed
}

var errQuiet = drover.Errorf(drover.Unavailable, "the registry sends nothing any more") // a constant error

// pull gets an image from its registry; many at once are one.
func (s *Cache) pull(ctx context.Context, spec *driver.Spec, c Request) (Image, error) {
	if c.PullTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = s.cfg.Clock.WithTimeout(ctx, c.PullTimeout)
		defer cancel()
	}
	var err error
	if c.Account, err = s.credentials(ctx, c); err != nil {
		return Image{}, err
	}
	spec.Say("Downloading image " + c.Ref)
	info, err := s.join(ctx, spec, c)
	if drover.CodeOf(err) == drover.Forbidden && c.AccountOptional && c.Account != (Account{}) {
		s.cfg.Log.Warn("pulling without an account (auth_soft_fail)", "image", c.Ref, "error", err)
		c.Account = Account{}
		info, err = s.join(ctx, spec, c)
	}
	return info, err
}

// join waits for the pull that is under way, or starts it.
func (s *Cache) join(ctx context.Context, spec *driver.Spec, c Request) (Image, error) {
	// The account is part of the key: who has none must not get an image by another's.
	key := strings.Join([]string{c.Ref, c.Account.Server, c.Account.Username, c.Account.Password, c.Account.Token}, "\x00")
	s.mu.Lock()
	p := s.pulls[key]
	if p == nil {
		// The pull outlives who began it, as long as another waits; so it has a context of its own.
		pullCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		p = &pull{done: make(chan struct{}), waiters: map[*driver.Spec]bool{}, cancel: cancel}
		s.pulls[key] = p
		go s.run(pullCtx, p, key, c) // ends with the pull, or when nobody waits for it
	}
	p.waiters[spec] = true
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.info, p.err
	case <-ctx.Done():
		s.mu.Lock()
		delete(p.waiters, spec)
		if len(p.waiters) == 0 {
			p.cancel()
			if s.pulls[key] == p {
				delete(s.pulls, key)
			}
		}
		s.mu.Unlock()
		return Image{}, drover.Errorf(drover.Unavailable, "pulling %s: %w", c.Ref, context.Cause(ctx))
	}
}

// tell tells all who wait for the pull.
func (s *Cache) tell(p *pull, text string) {
	s.mu.Lock()
	waiters := slices.Collect(maps.Keys(p.waiters))
	s.mu.Unlock()
	for _, w := range waiters {
		w.Say(text)
	}
}

// run does a pull for all who join it, and forgets it before they hear, so that the next request pulls anew.
func (s *Cache) run(ctx context.Context, p *pull, key string, c Request) {
	defer p.cancel()
	started := s.cfg.Clock.Now()
	had, _ := s.Find(ctx, c.Ref)
	err := s.fetch(ctx, p, c)
	if err == nil {
		p.info, err = s.got(ctx, c.Ref, had)
	}
	p.err = err
	if err == nil {
		s.cfg.Log.Info("pulled", "image", c.Ref, "took", s.cfg.Clock.Now().Sub(started))
	}
	s.mu.Lock()
	if s.pulls[key] == p {
		delete(s.pulls, key)
	}
	s.mu.Unlock()
	close(p.done)
}

// fetch lets the daemon pull, and gives up when nothing moves any more.
func (s *Cache) fetch(ctx context.Context, p *pull, c Request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := s.cfg.Clock.AfterFunc(s.cfg.PullQuiet, func() { cancel(errQuiet) })
	defer quiet.Stop()
	stream, err := s.cfg.Docker.ImagePull(ctx, c.Ref, client.ImagePullOptions{RegistryAuth: c.Account.encode()})
	if err != nil {
		return pullError(ctx, c.Ref, err)
	}
	defer stream.Close()
	progress := newProgress(s.cfg.Clock)
	for m, err := range stream.JSONMessages(ctx) {
		if err != nil {
			return pullError(ctx, c.Ref, err)
		}
		if m.Error != nil {
			return pullError(ctx, c.Ref, m.Error)
		}
		// Any message counts as progress, also one that a layer is being unpacked.
		quiet.Reset(s.cfg.PullQuiet)
		if text := progress.note(m); text != "" {
			s.tell(p, "Downloading image "+c.Ref+": "+text)
		}
	}
	return pullError(ctx, c.Ref, context.Cause(ctx))
}

// got finds what was fetched. It is ours to remove if its name was not there before, or of another image.
func (s *Cache) got(ctx context.Context, ref string, had Image) (Image, error) {
	info, err := s.Find(ctx, ref)
	if err == nil && info.ID != had.ID {
		info.Ref = ref
	}
	return info, err
}

// encode is the account as the daemon's header X-Registry-Auth takes it; "" for none.
func (a Account) encode() string {
	if a == (Account{}) {
		return ""
	}
	b, err := json.Marshal(registry.AuthConfig{Username: a.Username, Password: a.Password, IdentityToken: a.Token, ServerAddress: a.Server})
	if err != nil {
		return "" // strings always marshal
	}
	return base64.URLEncoding.EncodeToString(b)
}

// pullError tells what will stay so from what may pass: registries tell it to dockerd by status, and dockerd to us in
// words.
func pullError(ctx context.Context, image string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return drover.Errorf(drover.Unavailable, "pulling %s: %w", image, context.Cause(ctx))
	}
	text, code := strings.ToLower(err.Error()), drover.Unavailable
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	// Docker Hub says "denied" also of a repository that does not exist.
	case has("no basic auth", "unauthorized", "authentication required", "denied", "incorrect username"):
		code = drover.Forbidden
	case has("no such host", "connection refused", "timeout", "i/o", "tls", "eof", "toomanyrequests", "temporar"):
	case has("invalid reference", "invalid checksum", "unsupported", "no matching manifest"):
		code = drover.Invalid
	case has("not found", "manifest unknown", "name unknown", "does not exist", "repository name not known"):
		code = drover.NotFound
	}
	return drover.Errorf(code, "pulling %s: %w", image, err)
}
