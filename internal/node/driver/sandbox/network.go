package sandbox

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/driver/supervised"
	"github.com/drover-project/drover/internal/taskenv"
	"github.com/drover-project/drover/network"
)

// The network modes.
const (
	networkNone   = "none"
	networkHost   = "host"
	networkBridge = "bridge"
	networkGroup  = "group" // the group's namespace, which is on the bridge
)

// bridging is a sandbox's place on the bridge.
type bridging struct {
	address netip.Addr
	ports   []network.PortMapping
	shown   *network.Status // of the allocation
	forward *bridge.Forwarder
}

// networkMode is what the task's configuration says, else its group's network block. Without either there is none; a
// warm runner, whose code is unknown, gets the machine's network only when its own configuration says so.
func networkMode(c taskConfig, spec *driver.Spec) string {
	switch {
	case c.network != "":
		return c.network
	case spec.NetNS != nil:
		return networkGroup
	case len(spec.Networks) == 0 && c.task != nil && !spec.Pool:
		return networkHost // as on Nomad
	case len(spec.Networks) == 0:
		return networkNone
	case spec.Networks[0].Mode == networkBridge:
		return networkBridge
	case !spec.Pool && (spec.Networks[0].Mode == networkHost || spec.Networks[0].Mode == ""):
		return networkHost
	}
	return networkNone
}

// hostLeave is what a node's configuration says to give leave for the machine's network.
var hostLeave = HostLeave(Name)

// HostLeave is hostLeave of another driver.
func HostLeave(driver string) string {
	return fmt.Sprintf("needs allow_host_network on this node (plugin %q { config { allow_host_network = true } })", driver)
}

// chooseNetwork is networkMode with the node's leave. On the machine's network a sandbox reaches abstract sockets and all that listens on
// localhost, the agent itself too. A group may ask for it by mode host, or by a network block without a mode, and usually means only its
// ports. Without leave such a group gets its ports on the bridge, as from docker. Errors: Forbidden.
func (d *Driver) chooseNetwork(c taskConfig, spec *driver.Spec) (string, error) {
	mode := networkMode(c, spec)
	allowed, leave := d.cfg.AllowHostNetwork, hostLeave
	if c.task != nil {
		allowed, leave = c.task.AllowHostNetwork, HostLeave(c.task.Driver)
	}
	if mode != networkHost || allowed {
		return mode, nil
	}
	if why := d.bridgeMissing(); why != "" {
		return "", drover.Errorf(drover.Forbidden, "network: mode host %s, and mode bridge cannot be had: %s", leave, why)
	}
	return networkBridge, nil
}

// ownNamespace reports whether the sandbox has a network namespace that nobody else has.
func ownNamespace(mode string) bool { return mode != networkHost && mode != networkGroup }

// chosenPorts are those of the allocation that the configuration names, all if it names none. Errors: Invalid.
func chosenPorts(c taskConfig, spec *driver.Spec) ([]network.PortMapping, error) {
	if !c.hasPorts {
		return spec.Ports, nil
	}
	var chosen []network.PortMapping
	for _, label := range c.ports {
		i := slices.IndexFunc(spec.Ports, func(p network.PortMapping) bool { return p.Label == label })
		if i < 0 {
			return nil, drover.Errorf(drover.Invalid, "ports: the group has no port %q", label)
		}
		chosen = append(chosen, spec.Ports[i])
	}
	return chosen, nil
}

// reserveNetwork takes an address, before anything runs. Errors: Invalid, Exhausted, Unavailable.
func (d *Driver) reserveNetwork(b *box) error {
	if b.config.network != networkBridge {
		return nil
	}
	if why := d.bridgeMissing(); why != "" {
		return drover.Errorf(drover.Unavailable, "network_mode: bridge cannot be had on this node: %s", why)
	}
	ports, err := chosenPorts(b.config, b.spec)
	if err != nil {
		return err
	}
	kind := bridge.Jobs
	if b.spec.Pool {
		kind = bridge.Runners
	}
	address, err := d.bridge.Take(kind)
	if err != nil {
		return err
	}
	b.net = &bridging{address: address, ports: ports, shown: d.bridge.Status(address)}
	b.config.dns = b.net.shown.DNS
	return nil
}

// environment is the task's, with what its ports are called in its own network.
func (b *box) environment() map[string]string {
	env := supervised.Environment(b.spec, b.rootfs.Config.Env)
	if b.net != nil {
		for _, p := range b.net.ports {
			maps.Copy(env, taskenv.Inside(b.net.status(), p))
		}
	}
	return env
}

// connect joins the sandbox's network namespace to the bridge, and opens its ports.
func (d *Driver) connect(b *box) error {
	if b.net == nil {
		return nil
	}
	if err := d.bridge.Connect(b.net.address, b.pid); err != nil {
		return err
	}
	return d.forward(b)
}

// forward listens on the machine for the sandbox's ports, if it has any. Attach calls it too: an agent's listeners end with it.
func (d *Driver) forward(b *box) (err error) {
	if b.net != nil && len(b.net.ports) > 0 {
		b.net.forward, err = d.bridge.Forward(b.net.address, b.net.ports)
	}
	return err
}

// disconnect undoes it all. Idempotent.
func (d *Driver) disconnect(ctx context.Context, b *box) error {
	if b.net == nil {
		return nil
	}
	b.net.forward.Close()
	if err := d.bridge.Disconnect(ctx, b.net.address); err != nil {
		return err
	}
	b.net = nil
	return nil
}

// status is what the allocation shows of it.
func (n *bridging) status() *network.Status {
	if n == nil {
		return nil
	}
	return n.shown
}

// bridgeMissing says why there is no bridge on this machine, "" if there can be one.
func (d *Driver) bridgeMissing() string {
	return d.bridge.Missing()
}

// Close removes what the driver itself has on the machine, the bridge, unless a sandbox still uses it: for an agent
// that ends cleanly.
func (d *Driver) Close() error { return d.bridge.Close() }
