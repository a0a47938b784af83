package docker

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// SetTags implements provider.Provider.
func (p *Provider) SetTags(ctx context.Context, id string, tags map[string]string) error {
	p.tagMu.Lock()
	defer p.tagMu.Unlock()
	all, err := p.containers(ctx)
	if err != nil {
		return kinded(ctx, err)
	}
	at := slices.IndexFunc(all, func(c container.Summary) bool { return c.ID == id && c.Labels[labelKind] == kindMachine })
	if at < 0 {
		return &provider.Error{Kind: provider.NotFound, Message: "no machine " + id}
	}
	was := latest(all)[id]
	next := maps.Clone(was)
	if next == nil {
		next = map[string]string{}
	}
	maps.Copy(next, tags)
	next[fleet.TagOwner], next[labelKind], next[labelOf] = p.cfg.Owner, kindTags, id
	next[labelSeq] = strconv.FormatInt(max(p.clock.Now().UnixNano(), seq(was)+1), 10)
	made, err := p.docker.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: all[at].ImageID, Labels: next, Entrypoint: []string{"/never"}},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		return kinded(ctx, err)
	}
	return kinded(ctx, p.dropTags(ctx, id, made.ID))
}

// dropTags removes what carries the machine's tags but keep.
func (p *Provider) dropTags(ctx context.Context, id, keep string) error {
	all, err := p.containers(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Labels[labelOf] == id && all[i].ID != keep {
			p.remove(ctx, all[i].ID)
		}
	}
	return nil
}
