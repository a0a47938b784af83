package docker

import (
	"context"
	"sync/atomic"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

// daemonInfo is what dockerd says about itself, as of the last time that it was asked.
type daemonInfo struct {
	d    *Driver
	last atomic.Pointer[system.Info]
}

// ask asks it.
func (a *daemonInfo) ask(ctx context.Context) (*system.Info, error) {
	ctx, cancel := a.d.cfg.Clock.WithTimeout(ctx, askDaemon)
	defer cancel()
	r, err := a.d.docker.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, daemonError(err)
	}
	a.last.Store(&r.Info)
	return &r.Info, nil
}

// get does not ask when it was asked before.
func (a *daemonInfo) get(ctx context.Context) (*system.Info, error) {
	if info := a.last.Load(); info != nil {
		return info, nil
	}
	return a.ask(ctx)
}
