package agent

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/network"
)

// The attributes of CNI: Nomad's of plugins, and ours of why a network is not offered.
const (
	cniAttributes = "plugins.cni."
	cniVersion    = cniAttributes + "version."
	cniNetwork    = cniAttributes + "network."
	cniMode       = "cni/"
)

// lookAtNetworks looks for networks of CNI, and reports whether the node changed.
func (a *Agent) lookAtNetworks(ctx context.Context) bool {
	if a.networks == nil {
		return false
	}
	before := a.node.Load()
	now := *before
	offerNetworks(&now, a.networks.Look(ctx))
	if maps.Equal(now.Attributes, before.Attributes) && reflect.DeepEqual(now.NodeResources.NodeNetworks, before.NodeResources.NodeNetworks) {
		return false
	}
	a.amend(func(n *drover.Node) { offerNetworks(n, a.networks.Look(ctx)) })
	return true
}

// offerNetworks puts networks of CNI and their plugins into the node, in the place of those that are there.
func offerNetworks(n *drover.Node, found cni.Found) {
	n.Attributes = maps.Clone(n.Attributes)
	maps.DeleteFunc(n.Attributes, func(key, _ string) bool { return strings.HasPrefix(key, cniAttributes) })
	for plugin, version := range found.Plugins {
		n.Attributes[cniVersion+plugin] = version
	}
	r := *n.NodeResources
	r.NodeNetworks = slices.DeleteFunc(slices.Clone(r.NodeNetworks), func(o *drover.NodeNetworkResource) bool {
		return strings.HasPrefix(o.Mode, cniMode)
	})
	r.Networks = slices.DeleteFunc(slices.Clone(r.Networks), func(o *network.Resource) bool {
		return strings.HasPrefix(o.Mode, cniMode)
	})
	for _, name := range slices.Sorted(maps.Keys(found.Networks)) {
		if why := found.Networks[name]; why != "" {
			n.Attributes[cniNetwork+name+".missing"] = why
			continue
		}
		r.NodeNetworks = append(r.NodeNetworks, &drover.NodeNetworkResource{Mode: cniMode + name})
		r.Networks = append(r.Networks, &network.Resource{Mode: cniMode + name})
	}
	n.NodeResources = &r
}
