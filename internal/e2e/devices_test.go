package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/device/devicetest"
)

// deviceTask is a job whose task wants devices, and runs a script as rawJob does.
func deviceTask(id, driver, script string, want api.RequestedDevice) *api.Job {
	j := rawJob(id, "batch", "/bin/sh", "-c", script)
	task := j.TaskGroups[0].Tasks[0]
	task.Driver, task.Resources.MemoryMB = driver, new(64)
	task.Resources.Devices = []*api.RequestedDevice{&want}
	return j
}

// refusal registers a job, waits until it was looked at, and returns why it has no place.
func refusal(t *testing.T, c *api.Client, j *api.Job) *api.AllocationMetric {
	t.Helper()
	reg, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		e, meta, err := c.Evaluations().Info(reg.EvalID, q.WithContext(ctx))
		require.NoError(t, err)
		if e.Status == "complete" {
			require.Contains(t, e.FailedTGAllocs, "group", "it has a place")
			return e.FailedTGAllocs["group"]
		}
		q.WaitIndex = meta.LastIndex
	}
}

// awaitHealth waits until the node's devices have these health descriptions, by their ids.
func awaitHealth(t *testing.T, c *api.Client, nodeID string, want map[string]string) *api.Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		n, meta, err := c.Nodes().Info(nodeID, q.WithContext(ctx))
		require.NoError(t, err, "waiting for %v", want)
		got := map[string]string{}
		for _, d := range n.NodeResources.Devices {
			for _, i := range d.Instances {
				got[i.ID] = i.HealthDescription
			}
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return n
		}
		q.WaitIndex = meta.LastIndex
	}
}

// A machine has GPUs, as its driver's files and nvidia-smi have them. Jobs get those that they ask for, those that cannot are
// told why, statistics have what they use, and a GPU that vanishes is given to nobody.
func TestAJobHasAGPU(t *testing.T) {
	t.Parallel()
	m := devicetest.New(t)
	small := devicetest.GPU{UUID: "GPU-small", Model: "Tesla T4", Memory: 15360}
	big := devicetest.GPU{UUID: "GPU-big", Model: "NVIDIA A100", Minor: 1, Memory: 40960}
	m.NVIDIA(small, big)
	plugin := fmt.Sprintf("plugin \"nvidia-gpu\" {\n  config {\n    root = %q\n    tool = %q\n    fingerprint_period = \"100ms\"\n  }\n}\n",
		m.Root, m.Tool)
	c := start(t, append([]string{"-dev"}, config(t, "", plugin)...)...).nomad()
	nodes, _, err := c.Nodes().List(nil)
	require.NoError(t, err)
	node := awaitHealth(t, c, nodes[0].ID, map[string]string{"GPU-small": "", "GPU-big": ""})
	require.Equal(t, "nvidia/gpu/NVIDIA A100", node.NodeResources.Devices[0].ID())
	require.Equal(t, "40960 MiB", node.NodeResources.Devices[0].Attributes["memory"].String())

	atLeast := func(memory string) []*api.Constraint {
		return []*api.Constraint{api.NewConstraint("${device.attr.memory}", ">=", memory)}
	}
	const show = "echo $NVIDIA_VISIBLE_DEVICES $DROVER_DEVICES; sleep 1000"
	_, _, err = c.Jobs().Register(deviceTask("big", "raw_exec", show, api.RequestedDevice{Name: "gpu", Constraints: atLeast("30 GiB")}), nil)
	require.NoError(t, err)
	running := allocation(t, c, "big", "running")
	a, _, err := c.Allocations().Info(running.ID, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"GPU-big"}, a.AllocatedResources.Tasks["main"].Devices[0].DeviceIDs)
	usage, err := c.Allocations().Stats(a, nil)
	require.NoError(t, err)
	for _, of := range [][]*api.DeviceGroupStats{usage.ResourceUsage.DeviceStats, usage.Tasks["main"].ResourceUsage.DeviceStats} {
		require.Len(t, of, 1)
		require.Equal(t, "1024 / 40960 MiB", of[0].InstanceStats["GPU-big"].Summary.String())
	}
	host, err := c.Nodes().Stats(node.ID, nil)
	require.NoError(t, err)
	require.Len(t, host.DeviceStats, 2)

	why := refusal(t, c, deviceTask("waits", "raw_exec", show, api.RequestedDevice{Name: "nvidia/gpu/NVIDIA A100"}))
	require.Equal(t, map[string]int{"devices: nvidia/gpu/NVIDIA A100": 1}, why.DimensionExhausted)
	more := api.RequestedDevice{Name: "nvidia/gpu/NVIDIA A100", Constraints: atLeast("80 GiB")}
	why = refusal(t, c, deviceTask("never", "raw_exec", show, more))
	require.Equal(t, map[string]int{
		"missing devices: nvidia/gpu/NVIDIA A100 with ${device.attr.memory} >= 80 GiB (it is 40960 MiB of NVIDIA A100)": 1,
	}, why.ConstraintFiltered)

	// A driver that cannot give devices says so.
	fake := deviceTask("fake", "mock_driver", "", api.RequestedDevice{Name: "nvidia/gpu/Tesla T4"})
	fake.TaskGroups[0].Tasks[0].Config = map[string]any{"run_for": "1s"}
	_, _, err = c.Jobs().Register(fake, nil)
	require.NoError(t, err)
	failed, _, err := c.Allocations().Info(allocation(t, c, "fake", "failed").ID, nil)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(eventMessages(failed)), "the driver mock_driver cannot give a task devices")

	if node.Drivers["sandbox"].Healthy && node.Attributes["driver.sandbox.rootless"] == "false" {
		_, _, err = c.Jobs().Register(deviceTask("boxed", "sandbox", "head -c3 $DROVER_DEVICES | wc -c; ls /dev/nvidia1 || echo none",
			api.RequestedDevice{Name: "nvidia/gpu/Tesla T4"}), nil)
		require.NoError(t, err)
		require.Equal(t, "3\nnone\n", logs(t, c, allocation(t, c, "boxed", "complete").ID, "stdout"))
	}

	m.NVIDIA(big)
	awaitHealth(t, c, node.ID, map[string]string{"GPU-small": "it is not there any more", "GPU-big": ""})
	why = refusal(t, c, deviceTask("late", "raw_exec", show, api.RequestedDevice{Name: "nvidia/gpu/Tesla T4"}))
	require.Equal(t, map[string]int{"missing devices: 1 of nvidia/gpu/Tesla T4 (0 of 1 Tesla T4 are healthy)": 1}, why.ConstraintFiltered)
	m.NVIDIA(small, big)
	late := allocation(t, c, "late", "running").ID
	eventually(t, "the log", func() (bool, string) {
		said := logs(t, c, late, "stdout")
		return said == "GPU-small /dev/nvidia0\n", said
	})
}

// eventMessages are what a task's history says.
func eventMessages(a *api.Allocation) (out []string) {
	for _, e := range a.TaskStates["main"].Events {
		out = append(out, e.DisplayMessage)
	}
	return out
}
