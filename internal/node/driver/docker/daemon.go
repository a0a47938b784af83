package docker

import (
	"context"
	"sync/atomic"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
)

// daemonInfo is what dockerd says about itself, as of the last time that it was asked.
type daemonInfo struct {
	d    *Driver
	last atomic.Pointer[system.Info]
}

// ask asks it. What it said before holds on while it is there and does not come to say it: dockerd looks up the name of a
// registry under a lock that this question needs, too. So an image of a job, from a registry whose name servers are silent,
// took the driver from all others.
func (a *daemonInfo) ask(ctx context.Context) (*system.Info, error) {
	asking, cancel := a.d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	r, err := a.d.docker.Info(asking, client.InfoOptions{})
	if err == nil {
		a.last.Store(&r.Info)
		return &r.Info, nil
	}
	if last := a.last.Load(); last != nil && asking.Err() != nil && a.lives(ctx) {
		return last, nil
	}
	return nil, dockererr.Of(err)
}

// lives reports whether the daemon answers what needs nothing of it.
func (a *daemonInfo) lives(ctx context.Context) bool {
	ctx, cancel := a.d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	_, err := a.d.docker.Ping(ctx, client.PingOptions{})
	return err == nil
}

// await waits for a daemon that is away. A restart of it is no fault of the tasks that it ended: they should not lose
// their attempts with it. It reports whether the daemon answers.
func (a *daemonInfo) await(ctx context.Context, spec *driver.Spec) bool {
	spec.Say("Waiting for the " + a.d.engine())
	end := a.d.cfg.Clock.Now().Add(a.d.cfg.DaemonWait)
	for a.d.cfg.Clock.Now().Before(end) && clock.Sleep(ctx, a.d.cfg.Clock, min(retryDaemon, a.d.cfg.DaemonWait)) {
		if _, err := a.ask(ctx); err == nil {
			return true
		}
	}
	return false
}

// get does not ask when it was asked before.
func (a *daemonInfo) get(ctx context.Context) (*system.Info, error) {
	if info := a.last.Load(); info != nil {
		return info, nil
	}
	return a.ask(ctx)
}
