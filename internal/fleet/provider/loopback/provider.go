package loopback

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/flock"
)

// Config is what a Provider is made with.
type Config struct {
	// Dir holds the machines, each in a folder. Required, absolute. Several Drovers can share it.
	Dir string
	// Owner is whose machines are listed. Required.
	Owner string
	// Others are further owners whose machines are listed.
	Others []string
	// Command is what a machine runs, before the flags of an agent. Default: this program, "agent".
	Command []string
	// Env is what machines have of an environment, beside PATH, HOME and TMPDIR of ours.
	Env []string
	provider.Bounds
	// StopTimeout is how long an agent has to end by itself when its machine is destroyed. Default 3 s; below 0: none.
	StopTimeout time.Duration
}

// The limits of what we say of ourselves.
const (
	batch       = 16
	userDataMax = 64 << 10
	quotaGroup  = "loopback"
)

// Provider makes machines on this one.
type Provider struct {
	cfg   Config
	clock clock.Clock
	mu    sync.Mutex // one change at a time; other processes are kept out by a lock on the folder

	ending sync.Map // ids of machines that somebody of this process is clearing away
}

// New returns a provider over what is in the folder. Errors: Invalid.
func New(cfg Config, c clock.Clock) (*Provider, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, drover.Errorf(drover.Invalid, "loopback: dir: must be an absolute path, got %q", cfg.Dir)
	}
	if cfg.Owner == "" {
		return nil, drover.Errorf(drover.Invalid, "loopback: owner: must be set")
	}
	if len(cfg.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		cfg.Command = []string{self, "agent"}
	}
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	cfg.Env = append(env, cfg.Env...) // the last one counts
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 3 * time.Second
	}
	// Agents' guests with ids of their own must pass through.
	if err := os.MkdirAll(cfg.Dir, 0o711); err != nil {
		return nil, drover.Errorf(drover.Invalid, "loopback: dir: %w", err)
	}
	return &Provider{cfg: cfg, clock: c}, nil
}

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Idempotent: true, Batch: batch, Waits: true, UserDataMax: userDataMax}
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	if err := p.cfg.Sells(req.Offering.Type); err != nil {
		return nil, err
	}
	err = p.locked(ctx, func() error {
		for i := range req.Intents {
			if err := interrupted(ctx); err != nil {
				return err
			}
			m, err := p.create(&req, &req.Intents[i])
			if err != nil {
				return err
			}
			made = append(made, m)
		}
		return nil
	})
	return made, err
}

// SetTags implements provider.Provider.
func (p *Provider) SetTags(ctx context.Context, id string, tags map[string]string) error {
	return p.locked(ctx, func() error {
		r, err := p.read(id)
		if err != nil {
			return err
		}
		if !r.EndedAt.IsZero() {
			return notFound(id)
		}
		for k, v := range tags {
			r.Tags[k] = v
		}
		return p.write(r)
	})
}

// Console implements provider.Consoler: it is what the machine's agent writes.
func (p *Provider) Console(_ context.Context, id string) ([]byte, error) {
	if _, err := p.read(id); err != nil {
		return nil, err
	}
	return tail(filepath.Join(p.folder(id), logFile), 64<<10)
}

// locked calls f while nobody else changes the folder.
func (p *Provider) locked(ctx context.Context, f func() error) error {
	if err := interrupted(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(filepath.Join(p.cfg.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return transient("locking "+p.cfg.Dir, err)
	}
	defer func() { _ = flock.Close(file) }()
	for {
		if flock.TryExclusive(file) {
			return f()
		}
		if !clock.Sleep(ctx, p.clock, 5*time.Millisecond) {
			return interrupted(ctx)
		}
	}
}

// interrupted is the error of a call whose caller went away.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &provider.Error{Kind: provider.Ambiguous, Message: context.Cause(ctx).Error()}
}

func transient(doing string, err error) error {
	return &provider.Error{Kind: provider.Transient, Message: doing + ": " + err.Error()}
}

func notFound(id string) error {
	return &provider.Error{Kind: provider.NotFound, Message: "no machine " + strconv.Quote(id)}
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Consoler = (*Provider)(nil)
)
