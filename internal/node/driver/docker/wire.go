package docker

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
)

// wire is a warm runner's place on the bridge that sandboxes have, with its rules: on docker's own bridge its unknown code
// would reach the machine, a cloud's metadata and all other containers. It costs less, too.
type wire struct {
	address netip.Addr
	ports   []drover.PortMapping
	// holder is the container whose network namespace it is, for a runtime that looks at that only when it starts; "" = the
	// runner's own.
	holder  string
	forward *bridge.Forwarder
}

// stored wire.
type storedWire struct {
	Address string               `json:"address,omitempty"`
	Ports   []drover.PortMapping `json:"ports,omitempty"`
	Holder  string               `json:"holder,omitempty"`
}

func (w *wire) stored() storedWire {
	if w == nil {
		return storedWire{}
	}
	return storedWire{w.address.String(), w.ports, w.holder}
}

// status is what the allocation shows of it.
func (w *wire) status() *drover.AllocNetworkStatus {
	return &drover.AllocNetworkStatus{InterfaceName: bridge.Inside, Address: w.address.String()}
}

// reserve takes an address for a warm runner with a network that names none of docker's; its container then has none of
// docker's. Errors: Invalid, Exhausted, Unavailable.
func (d *Driver) reserve(spec *driver.Spec, c *taskConfig, b *box) error {
	if !spec.Pool || !onDefaultNetwork(c.network) || c.joined || d.cfg.Bridge == nil {
		return nil
	}
	if why := d.cfg.Bridge.Missing(); why != "" {
		return drover.Errorf(drover.Unavailable, "a network for runners cannot be had on this node: %s", why)
	}
	w := &wire{}
	for _, label := range c.ports {
		i := slices.IndexFunc(spec.Ports, func(p drover.PortMapping) bool { return p.Label == label })
		if i < 0 {
			return drover.Errorf(drover.Invalid, "ports: the group's network has no port %q", label)
		}
		w.ports = append(w.ports, spec.Ports[i])
	}
	if err := os.MkdirAll(b.stateDir, 0o700); err != nil { // for the resolver's configuration
		return err
	}
	var err error
	if w.address, err = d.cfg.Bridge.Take(bridge.Runners); err != nil {
		return err
	}
	b.wire, c.network, c.ports, c.wired = w, "none", nil, true
	return nil
}

// holdWire makes the namespace before the runner starts, in a container that only waits, and lets the runner's join it.
func (d *Driver) holdWire(ctx context.Context, spec *driver.Spec, c *taskConfig, b *box) error {
	if b.wire == nil || !b.attached {
		return nil
	}
	b.wire.holder = "drover-network-" + spec.AllocID
	pid, err := d.HoldNetwork(ctx, b.wire.holder, c.hostname)
	if err == nil {
		err = d.cfg.Bridge.Connect(b.wire.address, pid)
	}
	if err != nil {
		return fmt.Errorf("network of the runner: %w", err)
	}
	c.network, c.joined = containerMode+b.wire.holder, true
	return nil
}

// connectWire connects the started container to the bridge, unless its holder is, and opens its ports.
func (d *Driver) connectWire(b *box, pid int) error {
	if b.wire == nil {
		return nil
	}
	if b.wire.holder == "" {
		if err := d.cfg.Bridge.Connect(b.wire.address, pid); err != nil {
			return fmt.Errorf("network of the runner: %w", err)
		}
	}
	b.network = b.wire.status()
	return d.forwardWire(b)
}

func (d *Driver) forwardWire(b *box) (err error) {
	if b.wire != nil && len(b.wire.ports) > 0 {
		b.wire.forward, err = bridge.Forward(d.cfg.Clock, b.wire.address, b.wire.ports)
	}
	return err
}

// keepWire takes over what an earlier agent connected.
func (d *Driver) keepWire(b *box, s storedWire) {
	address, err := netip.ParseAddr(s.Address)
	if err != nil || d.cfg.Bridge == nil {
		return // it has none
	}
	d.cfg.Bridge.Hold(address)
	b.wire = &wire{address: address, ports: s.Ports, holder: s.Holder}
	if s.Holder != "" {
		d.KeepNetwork(s.Holder)
	}
}

// disconnectWire gives all of it back, once the container is gone. Idempotent.
func (d *Driver) disconnectWire(ctx context.Context, b *box) error {
	if b.wire == nil {
		return nil
	}
	b.wire.forward.Close()
	if b.wire.holder != "" {
		if err := d.LetGoNetwork(ctx, b.wire.holder); err != nil {
			return err
		}
	}
	if err := d.cfg.Bridge.Disconnect(ctx, b.wire.address); err != nil {
		return err
	}
	b.wire = nil
	return nil
}
