package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Labels beside the tags, which are labels themselves.
const (
	labelKind   = "dev.drover.fleet" // kindMachine or kindTags
	labelType   = "dev.drover.fleet.type"
	labelZone   = "dev.drover.fleet.zone"
	labelMarket = "dev.drover.fleet.market"
	labelIntent = "dev.drover.fleet.intent"
	labelSize   = "dev.drover.fleet.size"
	labelOf     = "dev.drover.fleet.of"  // of tags: the machine's container
	labelSeq    = "dev.drover.fleet.seq" // of tags: the higher one counts

	kindMachine = "machine"
	kindTags    = "tags"
	ownPrefix   = "dev.drover.fleet"
)

// remember is how long a machine that ended is listed.
const remember = 10 * time.Minute

// labels are a machine's tags, and what List has to tell of it beside: docker keeps nothing else for us.
func labels(req *provider.Request, intent *provider.Intent, tags map[string]string) map[string]string {
	size, _ := json.Marshal(req.Offering.Capacity) // three numbers
	all := maps.Clone(tags)
	maps.Copy(all, map[string]string{
		labelKind: kindMachine, labelType: req.Offering.Type, labelZone: req.Offering.Zone, labelMarket: req.Offering.Market,
		labelIntent: intent.ID, labelSize: string(size),
	})
	return all
}

// sizeOf is the capacity in the labels; zero for a container that is not ours.
func sizeOf(labels map[string]string) (size drover.Capacity) {
	_ = json.Unmarshal([]byte(labels[labelSize]), &size) // somebody's else
	return size
}

// containers returns all of the owners: machines, and what carries their tags.
func (p *Provider) containers(ctx context.Context) (all []container.Summary, err error) {
	for _, owner := range append([]string{p.cfg.Owner}, p.cfg.Others...) {
		got, err := p.docker.ContainerList(ctx, client.ContainerListOptions{
			All: true, Filters: client.Filters{}.Add("label", fleet.TagOwner+"="+owner).Add("label", labelKind),
		})
		if err != nil {
			return nil, err
		}
		all = append(all, got.Items...)
	}
	return all, nil
}

// lists reports whether machines of the owner are listed.
func (p *Provider) lists(owner string) bool {
	return owner == p.cfg.Owner || slices.Contains(p.cfg.Others, owner)
}

// List implements provider.Provider. All machines are on one page. It also removes those that ended a while ago, and
// tags of machines that are gone.
func (p *Provider) List(ctx context.Context, _ string) ([]provider.Machine, string, error) {
	all, err := p.containers(ctx)
	if err != nil {
		return nil, "", kinded(ctx, err)
	}
	slices.SortFunc(all, func(a, b container.Summary) int { return cmp.Compare(a.ID, b.ID) })
	later := latest(all)
	var list []provider.Machine
	there := map[string]bool{}
	for i := range all {
		if all[i].Labels[labelKind] != kindMachine {
			continue
		}
		there[all[i].ID] = true
		m := machine(&all[i], later[all[i].ID])
		if m.State == provider.Terminated && p.clock.Now().Sub(m.CreatedAt) > remember {
			p.remove(ctx, m.ID)
		}
		list = append(list, m)
	}
	for i := range all {
		if of := all[i].Labels[labelOf]; of != "" && !there[of] {
			p.remove(ctx, all[i].ID)
		}
	}
	return list, "", nil
}

// remove is housekeeping: what can't be removed now is removed by the next list.
func (p *Provider) remove(ctx context.Context, id string) {
	_, _ = p.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{RemoveVolumes: true})
}

// latest finds the tags that were set last, by machine.
func latest(all []container.Summary) map[string]map[string]string {
	later := map[string]map[string]string{}
	for i := range all {
		l := all[i].Labels
		if of := l[labelOf]; of != "" && (later[of] == nil || seq(l) > seq(later[of])) {
			later[of] = l
		}
	}
	return later
}

func seq(labels map[string]string) int64 {
	n, _ := strconv.ParseInt(labels[labelSeq], 10, 64) // ours are numbers
	return n
}

// one tells of a single machine.
func (p *Provider) one(ctx context.Context, id string) (m provider.Machine, err error) {
	got, err := p.docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("id", id)})
	if err != nil {
		return m, err
	}
	if len(got.Items) == 0 {
		return m, &provider.Error{Kind: provider.NotFound, Message: "the machine went away while it was made"}
	}
	return machine(&got.Items[0], nil), nil
}

// machine is a container as the seam tells it; later are tags that were set since it was made.
func machine(c *container.Summary, later map[string]string) provider.Machine {
	m := provider.Machine{
		ID: c.ID, Intent: c.Labels[labelIntent], Type: c.Labels[labelType], Zone: c.Labels[labelZone], Market: c.Labels[labelMarket],
		Tags: map[string]string{}, CreatedAt: time.Unix(c.Created, 0).UTC(),
	}
	for _, from := range []map[string]string{c.Labels, later} {
		for k, v := range from {
			if !strings.HasPrefix(k, ownPrefix) {
				m.Tags[k] = v
			}
		}
	}
	switch c.State {
	case container.StateCreated, container.StateRestarting:
		m.State = provider.Pending
	case container.StateRunning, container.StatePaused:
		m.State = provider.Running
	case container.StateRemoving:
		m.State = provider.Terminating
	case container.StateExited, container.StateDead:
		m.State = provider.Terminated
	}
	if c.NetworkSettings != nil {
		for _, n := range c.NetworkSettings.Networks {
			if n != nil && n.IPAddress.IsValid() {
				m.Address = n.IPAddress.String()
			}
		}
	}
	return m
}

// Console implements provider.Consoler.
func (p *Provider) Console(ctx context.Context, id string) ([]byte, error) {
	if err := p.ours(ctx, id); err != nil {
		return nil, kinded(ctx, err)
	}
	logs, err := p.docker.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "500"})
	if err != nil {
		return nil, kinded(ctx, err)
	}
	defer logs.Close()
	var b bytes.Buffer
	if _, err := stdcopy.StdCopy(&b, &b, logs); err != nil {
		return nil, kinded(ctx, err)
	}
	return b.Bytes(), nil
}
