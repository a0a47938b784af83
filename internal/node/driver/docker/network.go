package docker

import (
	"context"
	"maps"
	"slices"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover/internal/node/driver/docker/dockererr"
	"github.com/drover-project/drover/network"
)

// address asks for the container's address, if it has a network of its own.
func (d *Driver) address(ctx context.Context, c taskConfig, id string) (*network.Status, error) {
	if c.network == "none" || c.network == "host" || c.joined {
		return nil, nil // it has none
	}
	r, err := d.docker.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, dockererr.Of(err)
	}
	if r.Container.NetworkSettings == nil {
		return nil, nil // it has none
	}
	networks := r.Container.NetworkSettings.Networks
	// Of several networks the first by name with an address is shown, so that the answer does not change between calls.
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		n := networks[name]
		if n == nil || !n.IPAddress.IsValid() {
			continue
		}
		out := &network.Status{InterfaceName: "eth0", Address: n.IPAddress.String()}
		if n.GlobalIPv6Address.IsValid() {
			out.AddressIPv6 = n.GlobalIPv6Address.String()
		}
		return out, nil
	}
	return nil, nil // it has none
}
