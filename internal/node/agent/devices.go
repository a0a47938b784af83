package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/usage"
)

// watchDevices asks for a registration whenever the devices changed: one was found, is gone, or is well again.
func (a *Agent) watchDevices(ctx context.Context) {
	if a.devices == nil {
		return
	}
	for clock.Sleep(ctx, a.clock, a.devices.Period()) {
		found := a.devices.Look(ctx)
		was := a.node.Load().NodeResources
		if ctx.Err() != nil || reflect.DeepEqual(found, was.Devices) {
			continue
		}
		resources := *was
		resources.Devices = found
		a.amend(func(n *drover.Node) { n.NodeResources = &resources })
		a.log.Info("the node's devices changed", "devices", deviceSummary(found))
		a.again.Send()
	}
}

// deviceSummary says how many of each group are well: "nvidia/gpu/Tesla T4: 1 of 2".
func deviceSummary(groups []*drover.NodeDeviceResource) (out []string) {
	for _, g := range groups {
		well := 0
		for _, i := range g.Instances {
			if i.Healthy {
				well++
			}
		}
		out = append(out, fmt.Sprintf("%s/%s/%s: %d of %d", g.Vendor, g.Type, g.Name, well, len(g.Instances)))
	}
	return out
}

// addDevices samples the devices of an allocation's tasks. Nobody is asked about those of a task without any.
func (a *Agent) addDevices(ctx context.Context, alloc *drover.Allocation, out *usage.AllocResourceUsage) {
	if a.devices == nil || alloc.AllocatedResources == nil {
		return
	}
	for name, held := range alloc.AllocatedResources.Tasks {
		usage := out.Tasks[name]
		if usage == nil || usage.ResourceUsage == nil || len(held.Devices) == 0 {
			continue
		}
		of := *usage.ResourceUsage
		of.DeviceStats = a.devices.Stats(ctx, func(id string) bool {
			return slices.ContainsFunc(held.Devices, func(d *drover.AllocatedDeviceResource) bool { return slices.Contains(d.DeviceIDs, id) })
		})
		with := *usage // published samples are others', too
		with.ResourceUsage = &of
		out.Tasks[name] = &with
	}
}
