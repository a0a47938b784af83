package keeper

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// cloud is a provider and its loop.
type cloud struct {
	cfg      Provider
	plain    provider.Provider // nil if it can't be used
	provider provider.Provider // the same, with its calls measured
	pool     *pool.Pool
	err      error // why it can't be used
	who      fleet.Identity
}

// openCloud makes a provider's loop for a term, with the provider of the term before.
func (k *Keeper) openCloud(cfg Provider, who fleet.Identity, before *cloud) *cloud {
	c := &cloud{cfg: cfg, who: who}
	if before != nil && reflect.DeepEqual(before.who, who) { // a restored state may have another
		c.plain, c.provider = before.plain, before.provider
	}
	if c.provider == nil {
		made, err := cfg.Open(who.Owner, slices.Concat(who.Also, who.Former))
		if err != nil {
			c.err = err
			k.deps.Logger.Error("a provider of the fleet can't be used", "provider", cfg.Name, "error", err)
			return c
		}
		c.plain, c.provider = made, k.deps.Meters.Watch(cfg.Name, made)
	}
	rows := intents{k, cfg.Name, k.deps.Clock.Now()}
	c.pool = pool.New(pool.Config{
		Owner: who.Owner, Also: who.Also, Former: who.Former,
		Provider: cfg.Name, Setting: cfg.Setting, Policies: k.policies(cfg.Name), Seed: who.Seed, IDs: k.deps.IDs,
		UserData: UserData(k.home(cfg.Kind), who.Key), Shareable: bootstrap.Shareable, Audit: k.note, Spent: k.spentToday,
		Attributes: cfg.Attributes, Sharing: k.sharing, Learned: rows.learned,
	}, pool.Deps{
		Clock: k.deps.Clock, Log: k.deps.Logger.With("part", "fleet", "provider", cfg.Name), Provider: c.provider,
		Decided: func(took time.Duration) { k.deps.Meters.Decided(cfg.Name, took) },
		Demand:  rows, Nodes: rows, Intents: rows, Leads: k.deps.Log.Barrier,
	})
	return c
}

// home is what machines of the kind of provider are told.
func (k *Keeper) home(kind string) bootstrap.Home {
	h := k.cfg.Home
	h.Kind = kind
	if k.cfg.Servers == nil {
		return h
	}
	if list := k.cfg.Servers(); len(list) > 0 {
		h.Server, h.Others = list[0], list[1:]
	}
	return h
}

// UserData returns what makes the user data of an intent's machine; the machines of a batch have equal ones. key is the
// fleet's.
func UserData(home bootstrap.Home, key []byte) func(*fleet.Policy, string) string {
	return func(p *fleet.Policy, intent string) string {
		h := home
		if b, _, ok := provider.BatchOf(intent); ok {
			for _, id := range b.Intents() {
				h.Tokens = append(h.Tokens, pool.Token(key, id))
			}
		}
		return bootstrap.MachineData(p, h, pool.Token(key, intent), intent)
	}
}

// spentToday is what the ledger has of a pool since midnight UTC.
func (k *Keeper) spentToday(name string) (sum float64) {
	for c := range k.deps.State().FleetCosts(k.deps.Clock.Now().UTC().Format(time.DateOnly)) {
		if c.Pool == name {
			sum += c.Cost
		}
	}
	return sum
}

// note keeps, counts and logs an entry of the audit log.
func (k *Keeper) note(e fleet.Audit) {
	k.deps.Meters.Acted(&e)
	k.deps.Audit.Add(e)
	write := k.deps.Logger.Info
	switch e.What {
	case pool.CloudFails:
		write = k.deps.Logger.Error
	case pool.CreateFails:
		write = k.deps.Logger.Warn
	}
	write("fleet: "+e.What, "provider", e.Provider, "pool", e.Pool, "instance", e.Instance, "offering", e.Offering,
		"why", e.Why, "reason", e.Reason)
}

// keep runs a provider's loop, again if it fails.
func (k *Keeper) keep(ctx context.Context, c *cloud) {
	for ctx.Err() == nil {
		if err := c.pool.Run(ctx); err != nil && ctx.Err() == nil {
			k.deps.Logger.Error("the fleet's loop ended, starting it again", "provider", c.cfg.Name, "error", err)
			clock.Sleep(ctx, k.deps.Clock, time.Second)
		}
	}
}
