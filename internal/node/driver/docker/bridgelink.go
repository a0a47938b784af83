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
	"github.com/drover-project/drover/network"
)

// bridgeLink is a warm runner's place on the bridge that sandboxes have, with its rules. On docker's own bridge its unknown code would
// reach the machine, a cloud's metadata and all other containers. The bridge also costs less than docker's network.
type bridgeLink struct {
	address netip.Addr
	ports   []network.PortMapping
	// holder is the container whose network namespace it is, for a runtime that looks at that only when it starts; "" = the
	// runner's own.
	holder  string
	forward *bridge.Forwarder
}

// storedLink is a bridgeLink as it is kept over restarts of the agent.
type storedLink struct {
	Address string                `json:"address,omitempty"`
	Ports   []network.PortMapping `json:"ports,omitempty"`
	Holder  string                `json:"holder,omitempty"`
}

// stored is the link as State.Data has it; of nil it is empty, which keepLink takes for none.
func (w *bridgeLink) stored() storedLink {
	if w == nil {
		return storedLink{}
	}
	return storedLink{w.address.String(), w.ports, w.holder}
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
	w := &bridgeLink{}
	for _, label := range c.ports {
		i := slices.IndexFunc(spec.Ports, func(p network.PortMapping) bool { return p.Label == label })
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
	// Docker gives the container a namespace without a network, and publishes no ports: both are ours now.
	b.link, c.network, c.ports, c.wired = w, "none", nil, true
	return nil
}

// holdWire makes the namespace before the runner starts, in a container that only waits, and lets the runner's join it.
func (d *Driver) holdWire(ctx context.Context, spec *driver.Spec, c *taskConfig, b *box) error {
	if b.link == nil || !b.attached {
		return nil
	}
	b.link.holder = "drover-network-" + spec.AllocID
	pid, err := d.HoldNetwork(ctx, b.link.holder, c.hostname)
	if err == nil {
		err = d.cfg.Bridge.Connect(b.link.address, pid)
	}
	if err != nil {
		return fmt.Errorf("network of the runner: %w", err)
	}
	c.network, c.joined = containerMode+b.link.holder, true
	return nil
}

// connectWire connects the started container to the bridge, unless its holder is, and opens its ports.
func (d *Driver) connectWire(b *box, pid int) error {
	if b.link == nil {
		return nil
	}
	if b.link.holder == "" {
		if err := d.cfg.Bridge.Connect(b.link.address, pid); err != nil {
			return fmt.Errorf("network of the runner: %w", err)
		}
	}
	b.network = d.cfg.Bridge.Status(b.link.address)
	return d.forwardWire(b)
}

// forwardWire listens on the machine for the runner's ports. Nothing is done for a container without them, and Forwarder's Close ends it.
func (d *Driver) forwardWire(b *box) (err error) {
	if b.link != nil && len(b.link.ports) > 0 {
		b.link.forward, err = d.cfg.Bridge.Forward(b.link.address, b.link.ports)
	}
	return err
}

// keepLink takes over what an earlier agent connected.
func (d *Driver) keepLink(b *box, s storedLink) {
	address, err := netip.ParseAddr(s.Address)
	if err != nil || d.cfg.Bridge == nil {
		return // it has none
	}
	d.cfg.Bridge.Hold(address, false)
	b.link = &bridgeLink{address: address, ports: s.Ports, holder: s.Holder}
	if s.Holder != "" {
		d.KeepNetwork(s.Holder)
	}
}

// disconnectWire gives all of it back, once the container is gone. Idempotent.
func (d *Driver) disconnectWire(ctx context.Context, b *box) error {
	if b.link == nil {
		return nil
	}
	b.link.forward.Close()
	if b.link.holder != "" {
		if err := d.LetGoNetwork(ctx, b.link.holder); err != nil {
			return err
		}
	}
	if err := d.cfg.Bridge.Disconnect(ctx, b.link.address); err != nil {
		return err
	}
	b.link = nil
	return nil
}
