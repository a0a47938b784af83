package keeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/office"
)

// lead keeps the fleet for a term of office. Only the leader does: two servers that buy would buy twice.
func (k *Keeper) lead(ctx context.Context) {
	// Before the fleet has a name, so that a first leader that dies here leaves the next one to be the first.
	k.until(ctx, "putting the configured pools", k.putConfigured)
	who, err := k.identify(ctx)
	if err != nil {
		return // it ends with ctx, as it should
	}
	clouds := map[string]*cloud{}
	for _, p := range k.cfg.Providers {
		clouds[p.Name] = k.openCloud(p, who, k.cloud[p.Name])
	}
	k.cloud = clouds
	k.share()
	var loops sync.WaitGroup
	for _, c := range clouds {
		if c.pool != nil {
			loops.Go(func() { k.keep(ctx, c) }) // ends with ctx, as all that follow
			loops.Go(func() { k.bootstrap(ctx, c, who.Key) })
			loops.Go(func() { k.followPrices(ctx, c) })
		}
	}
	k.clouds.Store(&clouds)
	k.open()
	k.follow(ctx)
	k.clouds.Store(nil)
	loops.Wait()
}

// until repeats what the log refuses until it takes it, or ctx ends.
func (k *Keeper) until(ctx context.Context, doing string, do func(context.Context) error) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 10*time.Second) {
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		k.deps.Logger.Warn(doing+", trying again", "error", err, "in", wait)
		clock.Sleep(ctx, k.deps.Clock, wait)
	}
}

// identify returns who this Drover is, and makes that up the first time. Errors: ctx's.
func (k *Keeper) identify(ctx context.Context) (fleet.Identity, error) {
	k.until(ctx, "naming the fleet", k.name)
	who := k.deps.State().FleetIdentity()
	if who == nil || ctx.Err() != nil {
		return fleet.Identity{}, context.Cause(ctx)
	}
	if k.cfg.Owner == "" {
		return *who, nil
	}
	out := who.Called(k.cfg.Owner)
	out.Owner, out.Also = k.cfg.Owner, append(slices.Clone(out.Also), who.Owner)
	out.Also = slices.DeleteFunc(out.Also, func(tag string) bool { return tag == out.Owner })
	return out, nil
}

// name gives the fleet a name if it has none, and has the state know the configured one. So machines that were bought under a name stay
// ours if the configuration changes, and if the state is restored elsewhere.
func (k *Keeper) name(ctx context.Context) error {
	made := "drover-" + k.deps.IDs.New()[:13]
	switch who := k.deps.State().FleetIdentity(); {
	case who == nil:
		var random [40]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		return k.deps.Log.InitFleet(ctx, fleet.Identity{Owner: made, Key: random[:32], Seed: binary.LittleEndian.Uint64(random[32:])})
	case who.Owner == "": // the state was restored before this fleet had a name
		return k.deps.Log.NameFleet(ctx, made)
	case k.cfg.Owner != "" && !who.Owns(k.cfg.Owner):
		if err := k.deps.Log.NameFleet(ctx, k.cfg.Owner); drover.CodeOf(err) != drover.NotImplemented {
			return err
		}
	}
	return nil
}

// putConfigured stores the pools of the configuration, and retires those that it does not have any more. Of several servers
// only the first leader ever does this: else the pools would change with the leader.
func (k *Keeper) putConfigured(ctx context.Context) error {
	if k.cfg.Several && k.deps.State().FleetIdentity() != nil {
		return nil
	}
	if put := office.Configured(k.deps.State(), k.cfg.Pools); len(put) > 0 {
		return k.deps.Log.PutPools(ctx, put)
	}
	return nil
}

// policies returns what pools of the provider do now, by name.
func (k *Keeper) policies(providerName string) []*fleet.Policy {
	var list []*fleet.Policy
	for p := range k.deps.State().FleetPools() {
		if p.Policy.Provider == providerName {
			e := p.Effective()
			e.Datacenter = cmp.Or(e.Datacenter, k.cfg.Datacenter)
			list = append(list, e)
		}
	}
	return list
}

// share announces which pools there are that can buy: they divide the work of the node pools that they serve together.
func (k *Keeper) share() {
	var list []*fleet.Policy
	for name, c := range k.cloud {
		if c.pool != nil {
			list = append(list, k.policies(name)...)
		}
	}
	k.sharing.Set(list)
}

// firstNodePool is where work goes that may run anywhere.
func (k *Keeper) firstNodePool() string {
	for p := range k.deps.State().FleetPools() {
		if !p.Retiring {
			return p.Policy.NodePool
		}
	}
	return ""
}

// follow hands changes of pools to the loops, and forgets pools that ended once their last machine is gone.
func (k *Keeper) follow(ctx context.Context) {
	last := uint64(0)
	for ctx.Err() == nil {
		machines := k.deps.Changes.Machines()
		index, pools := k.deps.Changes.Pools()
		if index != last {
			k.share()
			for name, c := range k.cloud {
				if c.pool != nil {
					_ = c.pool.SetPolicies(ctx, k.policies(name)) // fails only with ctx
				}
			}
			last = index
		}
		s := k.deps.State()
		if ended := office.Ended(s); len(ended) > 0 {
			if err := k.deps.Log.DeletePools(ctx, ended); err != nil {
				k.deps.Logger.Warn("forgetting pools of the fleet", "pools", ended, "error", err)
				clock.Sleep(ctx, k.deps.Clock, time.Second)
			}
		} else if !office.Retiring(s) {
			machines = nil
		}
		select {
		case <-ctx.Done():
		case <-pools:
		case <-machines:
		}
	}
}
