package device

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/usage"
)

// source finds the devices of one vendor.
type source interface {
	vendor() string
	// discover returns the groups that are there now; none is no error.
	discover(ctx context.Context) ([]*drover.NodeDeviceResource, error)
	// reserve returns what a task needs to use these devices. Errors: NotFound, where one is not there any more.
	reserve(ids []string) (driver.Devices, error)
	// stats samples all devices.
	stats(ctx context.Context) ([]*usage.DeviceGroupStats, error)
}

// Maker says what of a vendor's devices is offered.
type Maker struct {
	Enabled bool
	Ignored []string // ids that are not offered
	// Tool tells about the devices; "" = as it is called, of PATH. Only NVIDIA has one.
	Tool string
	// Root is the folder whose proc, sys and dev are looked at. Default "/".
	Root string
}

// Config says which devices are looked for.
type Config struct {
	NVIDIA, AMD, Intel Maker
	Period             time.Duration // between two looks. Default 1m
	Clock              clock.Clock
	Log                *slog.Logger
}

// Devices are those of this machine.
type Devices struct {
	cfg     Config
	sources []source

	mu   sync.Mutex                              // guards what follows
	seen map[string][]*drover.NodeDeviceResource // what Look found last, by vendor; its values are never changed
	ill  map[string]string                       // what was told of a vendor whose devices could not be found, by vendor
}

// New returns the devices of this machine; it does not look yet.
func New(cfg Config) *Devices {
	d := &Devices{cfg: cfg, seen: map[string][]*drover.NodeDeviceResource{}, ill: map[string]string{}}
	if cfg.Period <= 0 {
		d.cfg.Period = time.Minute
	}
	if cfg.NVIDIA.Enabled {
		d.sources = append(d.sources, newNVIDIA(cfg.NVIDIA, cfg.Clock))
	}
	for vendor, m := range map[string]Maker{amd: cfg.AMD, intel: cfg.Intel} {
		if m.Enabled {
			d.sources = append(d.sources, &render{maker: m, clock: cfg.Clock, name: vendor})
		}
	}
	slices.SortFunc(d.sources, func(a, b source) int { return strings.Compare(a.vendor(), b.vendor()) })
	return d
}

// Period is the time between two looks.
func (d *Devices) Period() time.Duration { return d.cfg.Period }

// Look returns the groups of equal devices, in the order of their names. A device that was there once and is not any more stays in
// its group and is unhealthy, until the agent's end. What is returned must not be changed.
func (d *Devices) Look(ctx context.Context) []*drover.NodeDeviceResource {
	var all []*drover.NodeDeviceResource
	for _, s := range d.sources {
		found, err := s.discover(ctx)
		found = chosen(found)
		d.mu.Lock()
		was := d.seen[s.vendor()]
		switch {
		case ctx.Err() != nil: // nothing was found out
			found = was
		case err != nil:
			found = missing(was, nil, err.Error())
		default:
			found = append(found, missing(was, found, "it is not there any more")...)
		}
		found = joined(found)
		d.seen[s.vendor()] = found
		d.tell(s.vendor(), err)
		d.mu.Unlock()
		all = append(all, found...)
	}
	return all
}

// tell logs why a vendor's devices cannot be found, once for each reason. d.mu is held.
func (d *Devices) tell(vendor string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && d.ill[vendor] != text {
		d.cfg.Log.Warn("devices cannot be found", "vendor", vendor, "error", text)
	}
	d.ill[vendor] = text
}

// chosen leaves out groups without devices.
func chosen(groups []*drover.NodeDeviceResource) []*drover.NodeDeviceResource {
	return slices.DeleteFunc(groups, func(g *drover.NodeDeviceResource) bool { return len(g.Instances) == 0 })
}

// missing returns the devices of was that are not in found, as unhealthy ones with the reason.
func missing(was, found []*drover.NodeDeviceResource, reason string) (out []*drover.NodeDeviceResource) {
	here := map[string]bool{}
	for _, g := range found {
		for _, i := range g.Instances {
			here[i.ID] = true
		}
	}
	for _, g := range was {
		gone := *g
		gone.Instances = nil
		for _, i := range g.Instances {
			if !here[i.ID] {
				gone.Instances = append(gone.Instances, &drover.NodeDevice{ID: i.ID, HealthDescription: reason})
			}
		}
		if len(gone.Instances) > 0 {
			out = append(out, &gone)
		}
	}
	return out
}

// joined makes one group of those that have the same name, the attributes being the first's, and sorts groups and devices.
func joined(groups []*drover.NodeDeviceResource) (out []*drover.NodeDeviceResource) {
	byName := map[string]*drover.NodeDeviceResource{}
	for _, g := range groups {
		if first := byName[g.Name]; first != nil {
			first.Instances = append(first.Instances, g.Instances...)
			continue
		}
		own := *g
		own.Instances = slices.Clone(g.Instances)
		byName[g.Name] = &own
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		g := byName[name]
		slices.SortFunc(g.Instances, func(a, b *drover.NodeDevice) int { return cmp.Compare(a.ID, b.ID) })
		out = append(out, g)
	}
	return out
}

// Reserve returns what a task needs to use the devices that it was given. Errors: NotFound, where one of them is not there, or not
// well, any more.
func (d *Devices) Reserve(given []*drover.AllocatedDeviceResource) (driver.Devices, error) {
	all := driver.Devices{Env: map[string]string{}}
	for _, s := range d.sources {
		var ids []string
		for _, g := range given {
			if g.Vendor == s.vendor() {
				ids = append(ids, g.DeviceIDs...)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := d.well(s.vendor(), ids); err != nil {
			return driver.Devices{}, err
		}
		own, err := s.reserve(ids)
		if err != nil {
			return driver.Devices{}, err
		}
		all.Nodes, all.Libraries = append(all.Nodes, own.Nodes...), append(all.Libraries, own.Libraries...)
		all.Runtime, all.LibraryPath = cmp.Or(all.Runtime, own.Runtime), cmp.Or(all.LibraryPath, own.LibraryPath)
		maps.Copy(all.Env, own.Env)
	}
	for _, g := range given {
		if !slices.ContainsFunc(d.sources, func(s source) bool { return s.vendor() == g.Vendor }) {
			return driver.Devices{}, drover.Errorf(drover.NotFound, "device %s/%s/%s: this node does not offer devices of %s any more",
				g.Vendor, g.Type, g.Name, g.Vendor)
		}
	}
	var paths []string
	for _, n := range all.Nodes {
		if !n.Shared {
			paths = append(paths, n.Target)
		}
	}
	all.Env["DROVER_DEVICES"] = strings.Join(paths, ",")
	return all, nil
}

// Withheld implements hook.Devices: while the node has devices of NVIDIA, its container runtime gives none to others. Devices that are
// ignored are there, too.
func (d *Devices) Withheld() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.seen[nvidiaVendor]) == 0 && (!d.cfg.NVIDIA.Enabled || len(d.cfg.NVIDIA.Ignored) == 0) {
		return nil
	}
	return map[string]string{visibleDevices: "void"}
}

// well reports which of the devices may not be used. Before the first look all may.
func (d *Devices) well(vendor string, ids []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.seen[vendor] {
		for _, i := range g.Instances {
			if !i.Healthy && slices.Contains(ids, i.ID) {
				return drover.Errorf(drover.NotFound, "device %s/%s/%s %s: %s", g.Vendor, g.Type, g.Name, i.ID, i.HealthDescription)
			}
		}
	}
	return nil
}

// Stats samples the devices that keep wants. A vendor whose devices cannot be sampled is left out: what else is asked for does not
// fail for it.
func (d *Devices) Stats(ctx context.Context, keep func(id string) bool) []*usage.DeviceGroupStats {
	out := []*usage.DeviceGroupStats{}
	for _, s := range d.sources {
		d.mu.Lock()
		known := slices.ContainsFunc(d.seen[s.vendor()], func(g *drover.NodeDeviceResource) bool {
			return slices.ContainsFunc(g.Instances, func(i *drover.NodeDevice) bool { return keep(i.ID) })
		})
		d.mu.Unlock()
		if !known {
			continue
		}
		groups, err := s.stats(ctx)
		if err != nil {
			d.cfg.Log.Debug("devices cannot be sampled", "vendor", s.vendor(), "error", err)
			continue
		}
		for _, g := range groups {
			own := *g
			own.InstanceStats = maps.Clone(g.InstanceStats)
			maps.DeleteFunc(own.InstanceStats, func(id string, _ *usage.DeviceStats) bool { return !keep(id) })
			if len(own.InstanceStats) > 0 {
				out = append(out, &own)
			}
		}
	}
	return out
}
