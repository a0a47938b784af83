package sim

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Provider is the cloud behind the seam, on a clock.
type Provider struct {
	Notify func(Happening) // told of what happens to machines, if set before the first call; not under a lock
	clock  clock.Clock
	mu     sync.Mutex
	cloud  *Cloud // guarded by mu
}

// New returns a provider over an empty cloud.
func New(cfg Config, c clock.Clock) *Provider { return &Provider{clock: c, cloud: NewCloud(cfg)} }

// With calls f with the cloud, moved to the present, to look or to meddle.
func (p *Provider) With(f func(now time.Time, c *Cloud)) {
	for _, h := range p.with(f) {
		if p.Notify != nil {
			p.Notify(h)
		}
	}
}

// with calls f with the cloud after all that was due has happened, and returns that.
func (p *Provider) with(f func(now time.Time, c *Cloud)) []Happening {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	happened := p.cloud.Advance(now)
	f(now, p.cloud)
	return happened
}

// wait lets a call take its time; a caller that goes away does not know what happened.
func (p *Provider) wait(ctx context.Context, d time.Duration) error {
	if d > 0 && !clock.Sleep(ctx, p.clock, d) || ctx.Err() != nil {
		return &provider.Error{Kind: provider.Ambiguous, Message: context.Cause(ctx).Error()}
	}
	return nil
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	var took time.Duration
	p.With(func(now time.Time, c *Cloud) { made, took, err = c.Create(now, &req) })
	if e := p.wait(ctx, took); e != nil {
		return nil, e
	}
	return made, err
}

// List implements provider.Provider.
func (p *Provider) List(ctx context.Context, page string) (list []provider.Machine, next string, err error) {
	var took time.Duration
	p.With(func(now time.Time, c *Cloud) { list, next, took, err = c.List(now, page) })
	if e := p.wait(ctx, took); e != nil {
		return nil, "", e
	}
	return list, next, err
}

// Destroy implements provider.Provider.
func (p *Provider) Destroy(ctx context.Context, id string) (err error) {
	var took time.Duration
	p.With(func(now time.Time, c *Cloud) { took, err = c.Destroy(now, id) })
	if e := p.wait(ctx, took); e != nil {
		return e
	}
	return err
}

// SetTags implements provider.Provider.
func (p *Provider) SetTags(ctx context.Context, id string, tags map[string]string) (err error) {
	var took time.Duration
	p.With(func(now time.Time, c *Cloud) { took, err = c.SetTags(now, id, tags) })
	if e := p.wait(ctx, took); e != nil {
		return e
	}
	return err
}

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities() provider.Capabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cloud.cfg.Caps
}

// Prices implements provider.Pricer: of all that it sells.
func (p *Provider) Prices(context.Context, []fleet.Offering) (map[string]float64, error) {
	prices := map[string]float64{}
	p.With(func(now time.Time, c *Cloud) {
		for _, o := range c.Prices(now) {
			prices[o.Key] = o.Price
		}
	})
	return prices, nil
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Pricer   = (*Provider)(nil)
)
