package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
func (f *fleetPlane) bootstrap(ctx context.Context, c *cloud, key []byte) {
	var calls sync.WaitGroup
	defer calls.Wait()
	begun := map[string]bool{} // instances that boot, and were, or are being, made ours
	for clock.Sleep(ctx, f.deps.Clock, lookForBoots) {
		still := map[string]bool{}
		for _, p := range f.policies(c.cfg.Name) {
			if p.SSH == nil {
				continue
			}
			for _, i := range f.booting(ctx, c, p.Name) {
				if still[i.ID] = true; begun[i.ID] {
					continue
				}
				calls.Go(func() { // ends with the boot timeout, or with ctx
					if err := f.bootstrapOne(ctx, c, p, &i, pool.Token(key, i.ID)); err != nil && ctx.Err() == nil {
						f.deps.Log.Error("making a machine ours over ssh", "instance", i.ID, "address", i.Address, "error", err)
					}
				})
			}
		}
		begun = still
	}
}

// booting returns the pool's machines that have an address, and whose agent has not called.
func (f *fleetPlane) booting(ctx context.Context, c *cloud, name string) (list []fleet.Instance) {
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

func (f *fleetPlane) bootstrapOne(ctx context.Context, c *cloud, p *fleet.Policy, i *fleet.Instance, token string) error {
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, p.BootTimeout)
	defer cancel()
	cfg, err := sshConfig(p, c.provider, i.ProviderID, token, sshData(p, f.home(c.cfg.Kind()), token, i.ID))
	if err != nil {
		return err
	}
	cfg.Report = func(s bootstrap.Step) {
		f.deps.Log.Info("making a machine ours", "instance", i.ID, "step", s.Name, "says", s.Says, "took", s.Took)
	}
	return bootstrap.Run(ctx, cfg, i.Address, f.deps.Clock)
}

// sshConfig is how a machine of the policy is made ours. Errors: Invalid for a key that can't be read.
func sshConfig(p *fleet.Policy, cloud provider.Provider, id, token, agentText string) (bootstrap.Config, error) {
	signer, err := bootstrap.ReadKey(p.SSH.Key)
	if err != nil {
		return bootstrap.Config{}, err
	}
	cfg := bootstrap.Config{User: p.SSH.User, Port: p.SSH.Port, Signer: signer, Agent: agentText, Probe: p.BootProbe}
	if w, ok := cloud.(interface{ unwrap() provider.Provider }); ok {
		cloud = w.unwrap()
	}
	shows, ok := cloud.(provider.Consoler)
	switch {
	case len(p.SSH.HostKeys) > 0:
		cfg.Host.Pinned = p.SSH.HostKeys
	case p.SSH.SecretFile != "":
		cfg.Host.Secret, cfg.Host.SecretFile = hostSecret(token), p.SSH.SecretFile
	case ok:
		cfg.Host.Console = func(ctx context.Context) ([]byte, error) { return shows.Console(ctx, id) }
	}
	return cfg, nil
}

// unwrap returns the provider without its meters.
func (w *watched) unwrap() provider.Provider { return w.Provider }

// hostSecret is what only the machine with the token can know, and does not tell the token.
func hostSecret(token string) string {
	sum := sha256.Sum256([]byte("drover-host\x00" + token))
	return hex.EncodeToString(sum[:])
}
