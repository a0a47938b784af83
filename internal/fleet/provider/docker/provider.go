package docker

import (
	"context"
	"fmt"
	"sync"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Config is what a Provider is made with.
type Config struct {
	// Endpoint of the daemon. Default: DOCKER_HOST and its kin, else unix:///var/run/docker.sock.
	Endpoint string
	// Owner is whose machines are listed. Required.
	Owner string
	// Others are further owners whose machines are listed.
	Others []string
	// Binary is the drover that machines run, linked statically. Default: this program.
	Binary string
	// Image of machines whose pool names none. Default: one with nothing in it but the binary.
	Image string
	// Network of the daemon that machines are on. Default: the daemon's.
	Network string
	// Privileged lets machines make sandboxes and control groups, and gives them the run of the real machine.
	Privileged bool
	provider.Bounds
}

const (
	userDataMax = 64 << 10
	quotaGroup  = "docker"
)

// Provider makes machines that are containers.
type Provider struct {
	cfg    Config
	clock  clock.Clock
	docker *client.Client
	mu     sync.Mutex // one container is made at a time, so that bounds hold; they start at once
	image  string     // that was made of the binary; guarded by mu
	tagMu  sync.Mutex // one change of tags at a time, so that none is lost
}

// New returns a provider. No I/O: whether there is a daemon is told by the first call. Errors: Invalid.
func New(cfg Config, c clock.Clock) (*Provider, error) {
	if cfg.Owner == "" {
		return nil, drover.Errorf(drover.Invalid, "docker: owner: must be set")
	}
	if cfg.Binary == "" {
		cfg.Binary = "/proc/self/exe" // also when the file was replaced since
	}
	options := []client.Opt{client.FromEnv}
	if cfg.Endpoint != "" {
		options = []client.Opt{client.WithHost(cfg.Endpoint)}
	}
	d, err := client.New(options...)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "docker: endpoint %q: %w", cfg.Endpoint, err)
	}
	return &Provider{cfg: cfg, clock: c, docker: d}, nil
}

// Close lets go of the connections to the daemon. Machines live on.
func (p *Provider) Close() error { return p.docker.Close() }

// Capabilities implements provider.Provider.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{Idempotent: true, Batch: 1, Waits: true, UserDataMax: userDataMax}
}

// Create implements provider.Provider.
func (p *Provider) Create(ctx context.Context, req provider.Request) (made []provider.Machine, err error) {
	if err := p.cfg.Sells(req.Offering.Type); err != nil {
		return nil, err
	}
	for i := range req.Intents {
		m, err := p.create(ctx, &req, &req.Intents[i])
		if err != nil {
			return made, kinded(ctx, err)
		}
		made = append(made, m)
	}
	return made, nil
}

// Destroy implements provider.Provider: when it returns nil, nothing of the machine runs.
func (p *Provider) Destroy(ctx context.Context, id string) error {
	if err := p.ours(ctx, id); err != nil {
		return kinded(ctx, err)
	}
	_, err := p.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err := kinded(ctx, err); err != nil {
		return err
	}
	return kinded(ctx, p.dropTags(ctx, id, ""))
}

// ours finds out whether the container is a machine of the owners. Errors: NotFound.
func (p *Provider) ours(ctx context.Context, id string) error {
	got, err := p.docker.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	if c := got.Container.Config; c == nil || !p.lists(c.Labels[fleet.TagOwner]) || c.Labels[labelKind] != kindMachine {
		return &provider.Error{Kind: provider.NotFound, Message: fmt.Sprintf("no machine %q", id)}
	}
	return nil
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Consoler = (*Provider)(nil)
)
