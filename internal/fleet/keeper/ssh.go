package keeper

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// lookForBoots is how often machines are looked for that wait to be made ours over ssh.
const lookForBoots = 2 * time.Second

// bootstrap makes machines ours over ssh that boot in pools with an ssh block, each in a goroutine, until ctx ends.
func (k *Keeper) bootstrap(ctx context.Context, c *cloud, key []byte) {
	var calls sync.WaitGroup
	defer calls.Wait()
	begun := map[string]bool{} // instances that boot, and were, or are being, made ours
	for clock.Sleep(ctx, k.deps.Clock, lookForBoots) {
		still := map[string]bool{}
		for _, p := range k.policies(c.cfg.Name) {
			if p.SSH == nil {
				continue
			}
			for _, i := range k.booting(ctx, c, p.Name) {
				if still[i.ID] = true; begun[i.ID] {
					continue
				}
				calls.Go(func() { // ends with the boot timeout, or with ctx
					if err := k.bootstrapOne(ctx, c, p, &i, pool.Token(key, i.ID)); err != nil && ctx.Err() == nil {
						k.deps.Logger.Error("making a machine ours over ssh", "instance", i.ID, "address", i.Address, "error", err)
					}
				})
			}
		}
		begun = still
	}
}

// booting returns the pool's machines that have an address, and whose agent has not called.
func (k *Keeper) booting(ctx context.Context, c *cloud, name string) (list []fleet.Instance) {
	_ = c.pool.Do(ctx, func(_ time.Time, core *pool.Core) error { // ctx ended
		for _, i := range core.Instances(name) {
			if i.State == fleet.InstanceBooting && i.Address != "" && i.NodeID == "" {
				list = append(list, i)
			}
		}
		return nil
	})
	return list
}

func (k *Keeper) bootstrapOne(ctx context.Context, c *cloud, p *fleet.Policy, i *fleet.Instance, token string) error {
	ctx, cancel := k.deps.Clock.WithTimeout(ctx, p.BootTimeout)
	defer cancel()
	cfg, err := bootstrap.SSHConfig(p, token, bootstrap.SSHData(p, k.home(c.cfg.Kind), token, i.ID), provider.ConsoleOf(c.plain, i.ProviderID))
	if err != nil {
		return err
	}
	cfg.Report = func(s bootstrap.Step) {
		k.deps.Logger.Info("making a machine ours", "instance", i.ID, "step", s.Name, "says", s.Says, "took", s.Took)
	}
	return bootstrap.Run(ctx, cfg, i.Address, k.deps.Clock)
}
