package execplane

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// againAfter is between two tries to make an environment of the configuration.
const againAfter = time.Second

// runEnvironments makes the configured environments, of several servers at the one that leads. Errors: Invalid for one of them.
func (p *Plane) runEnvironments(ctx context.Context) error {
	if !p.deps.Servers.Clustered() {
		return p.makeEnvironments(ctx, p.PutEnvironment)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.deps.Log.Follow(ctx, func(term context.Context) {
		if err := p.makeEnvironments(term, p.PutEnvironment); err != nil {
			stop(err)
		}
	})
	return context.Cause(ctx)
}

// makeEnvironments puts those of the configuration, trying again while the log cannot be written, and waits for the end of ctx.
func (p *Plane) makeEnvironments(
	ctx context.Context, put func(context.Context, execution.Environment) (created bool, err error),
) error {
	for _, s := range p.cfg.Environments {
		for {
			_, err := put(ctx, configured(s))
			if err == nil || ctx.Err() != nil {
				break
			}
			// An environment that is wrong does not become right by waiting: the agent stops with the error.
			if drover.CodeOf(err) == drover.Invalid {
				return err
			}
			p.deps.Logger.Warn("making a configured environment", "environment", s.ID, "error", err)
			clock.Sleep(ctx, p.deps.Clock, againAfter)
		}
	}
	<-ctx.Done()
	return nil
}

// configured is an environment of the configuration.
func configured(s *config.EnvSetting) execution.Environment {
	return execution.Environment{
		ID: s.ID, Image: s.Image, Driver: s.Driver, PoolSize: s.PoolSize, CPU: s.CPU, MemoryMB: s.MemoryMB,
		Network: optional.Value(s.Network),
	}
}

// inNamespaces is the cluster version from which all servers keep environments of several namespaces apart.
const inNamespaces = 3

// check says at once when an image is a path that does not exist, if this process has the only node's disk. It says so, too, when
// a server would not know an environment of another namespace than the default.
func (p *Plane) check(_ context.Context, env execution.Environment) error {
	if v := p.deps.Log.Version(); env.Namespace != "" && v < inNamespaces {
		return drover.Errorf(drover.Unavailable, "namespace %q: environments in other namespaces than default need cluster version %d, "+
			"this one has %d", env.Namespace, inNamespaces, v)
	}
	if !p.deps.Local || !filepath.IsAbs(env.Image) {
		return nil
	}
	if _, err := os.Stat(env.Image); err != nil {
		return drover.Errorf(drover.Invalid, "image: %w", err)
	}
	return nil
}
