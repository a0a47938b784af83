package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/usage"
)

// someDevices is a machine with a device that may fall ill.
type someDevices struct {
	mu      sync.Mutex // guards what follows
	ill     string
	looks   int
	sampled int
}

func (s *someDevices) set(ill string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ill = ill
}

func (s *someDevices) Look(context.Context) []*drover.NodeDeviceResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return []*drover.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "t4", Instances: []*drover.NodeDevice{
		{ID: "a", Healthy: s.ill == "", HealthDescription: s.ill}, {ID: "b", Healthy: true},
	}}}
}

func (*someDevices) Period() time.Duration { return 10 * time.Second }

func (s *someDevices) Stats(_ context.Context, keep func(id string) bool) []*usage.DeviceGroupStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampled++
	g := &usage.DeviceGroupStats{Vendor: "nvidia", Type: "gpu", Name: "t4", InstanceStats: map[string]*usage.DeviceStats{}}
	for _, id := range []string{"a", "b"} {
		if keep(id) {
			g.InstanceStats[id] = &usage.DeviceStats{}
		}
	}
	return []*usage.DeviceGroupStats{g}
}

func (*someDevices) Reserve([]*drover.AllocatedDeviceResource) (driver.Devices, error) {
	return driver.Devices{}, nil
}

func (*someDevices) Withheld() map[string]string { return nil }

// What a node's devices are is registered, and again when one of them falls ill or is well; not without a change.
func TestDevicesAreRegistered(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		devices := &someDevices{}
		b.devices = devices
		b.start()
		health := func() (out []bool) {
			for _, i := range b.control.node.NodeResources.Devices[0].Instances {
				out = append(out, i.Healthy)
			}
			return out
		}
		require.Equal(t, []bool{true, true}, health())
		before := b.agent.Node()
		sleep(time.Minute)
		registered, _ := b.control.counts()
		require.Equal(t, 1, registered)
		require.GreaterOrEqual(t, devices.looks, 6)
		devices.set("it is not there any more")
		sleep(11 * time.Second)
		require.Equal(t, []bool{false, true}, health())
		require.True(t, before.NodeResources.Devices[0].Instances[0].Healthy, "what was registered is not changed")
		require.Equal(t, "1", b.control.node.Attributes["driver.fake"])
		devices.set("")
		sleep(11 * time.Second)
		require.Equal(t, []bool{true, true}, health())
		registered, _ = b.control.counts()
		require.Equal(t, 3, registered)
	})
}

// Statistics have the devices of the tasks that were given some; for others nobody is asked.
func TestDeviceStats(t *testing.T) {
	bubble(t, func(t *testing.T, b *bundle) {
		devices := &someDevices{}
		b.devices = devices
		b.start()
		usage := func() *usage.AllocResourceUsage {
			return &usage.AllocResourceUsage{Tasks: map[string]*usage.TaskResourceUsage{
				"t": {ResourceUsage: &usage.ResourceUsage{}}, "u": {ResourceUsage: &usage.ResourceUsage{}},
			}}
		}
		alloc := &drover.Allocation{AllocatedResources: &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{
			"t": {Devices: []*drover.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "t4", DeviceIDs: []string{"b"}}}}, "u": {},
		}}}
		out := usage()
		published := out.Tasks["t"].ResourceUsage
		b.agent.addDevices(t.Context(), alloc, out)
		sum(out)
		require.Equal(t, 1, devices.sampled)
		require.Contains(t, out.Tasks["t"].ResourceUsage.DeviceStats[0].InstanceStats, "b")
		require.NotContains(t, out.Tasks["t"].ResourceUsage.DeviceStats[0].InstanceStats, "a", "it is another's")
		require.Empty(t, out.Tasks["u"].ResourceUsage.DeviceStats)
		require.Len(t, out.ResourceUsage.DeviceStats, 1)
		require.Nil(t, published.DeviceStats, "others have it, too")
		alloc.AllocatedResources.Tasks["t"].Devices = nil
		b.agent.addDevices(t.Context(), alloc, usage())
		require.Equal(t, 1, devices.sampled)
	})
}
