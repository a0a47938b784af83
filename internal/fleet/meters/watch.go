package meters

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Watch returns the provider with its calls measured.
func (m *Meters) Watch(name string, p provider.Provider) provider.Provider {
	return &watched{Provider: p, name: name, meters: m, clock: m.clock}
}

type watched struct {
	provider.Provider
	name   string
	meters *Meters
	clock  clock.Clock
}

// Console implements provider.Consoler.
func (w *watched) Console(ctx context.Context, id string) ([]byte, error) {
	shows, ok := w.Provider.(provider.Consoler)
	if !ok {
		return nil, drover.Errorf(drover.NotImplemented, "the cloud shows no console")
	}
	return shows.Console(ctx, id)
}

func (w *watched) took(operation string, began time.Time, err error) {
	w.meters.Called(w.name, operation, w.clock.Now().Sub(began), err)
}

// Called counts a call of a cloud.
func (m *Meters) Called(name, operation string, took time.Duration, err error) {
	kind := "none"
	if err != nil {
		kind = string(provider.KindOf(err))
		if kind == string(provider.RateLimited) {
			m.mu.Lock()
			m.limited[name] = m.clock.Now()
			m.mu.Unlock()
		}
	}
	m.calls(took.Seconds(), name, operation, kind)
}

// Create implements provider.Provider.
func (w *watched) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	defer func(began time.Time) {
		w.took("create", began, err)
		outcome := "success"
		if err != nil {
			outcome = string(provider.KindOf(err))
		}
		w.meters.starts(w.name, req.Offering.Zone, req.Offering.Market, outcome)
	}(w.clock.Now())
	return w.Provider.Create(ctx, req)
}

// List implements provider.Provider.
func (w *watched) List(ctx context.Context, page string) (list []provider.Machine, next string, err error) {
	defer func(began time.Time) { w.took("list", began, err) }(w.clock.Now())
	return w.Provider.List(ctx, page)
}

// Destroy implements provider.Provider.
func (w *watched) Destroy(ctx context.Context, id string) (err error) {
	defer func(began time.Time) { w.took("destroy", began, err) }(w.clock.Now())
	return w.Provider.Destroy(ctx, id)
}

// SetTags implements provider.Provider.
func (w *watched) SetTags(ctx context.Context, id string, tags map[string]string) (err error) {
	defer func(began time.Time) { w.took("tag", began, err) }(w.clock.Now())
	return w.Provider.SetTags(ctx, id, tags)
}
