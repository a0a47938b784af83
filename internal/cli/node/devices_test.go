package node

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/device"
	"github.com/drover-project/drover/internal/cli/term"
)

func TestShowDevices(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := &term.App{Out: &out}
	n := &drover.Node{NodeResources: &drover.NodeResources{}}
	require.NoError(t, showDevices(app, n, nil))
	require.Empty(t, out.String(), "most machines have none")
	n.NodeResources.Devices = []*drover.NodeDeviceResource{{
		Vendor: "nvidia", Type: "gpu", Name: "Tesla T4", Attributes: map[string]any{"memory": device.Int(15360, "MiB").Record()},
		Instances: []*drover.NodeDevice{{ID: "GPU-1", Healthy: true}, {ID: "GPU-2", HealthDescription: "it is not there any more"}},
	}}
	held := &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{"t": {Devices: []*drover.AllocatedDeviceResource{
		{Vendor: "nvidia", Type: "gpu", Name: "Tesla T4", DeviceIDs: []string{"GPU-1"}},
	}}}}
	require.NoError(t, showDevices(app, n, []*drover.Allocation{
		{Name: "train.g[0]", AllocatedResources: held},
		{Name: "old.g[0]", AllocatedResources: held, ClientStatus: drover.AllocClientComplete},
	}))
	require.Regexp(t, `nvidia/gpu/Tesla T4 +GPU-1 +15360 MiB +yes +train\.g\[0\]`, out.String())
	require.Regexp(t, `nvidia/gpu/Tesla T4 +GPU-2 +15360 MiB +no +- +it is not there any more`, out.String())
}
