package hook

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/taskenv"
)

// aMachine has devices: what was asked for is in asked.
type aMachine struct {
	asked []*drover.AllocatedDeviceResource
}

func (m *aMachine) Reserve(given []*drover.AllocatedDeviceResource) (driver.Devices, error) {
	m.asked = given
	if given[0].Name == "gone" {
		return driver.Devices{}, drover.Errorf(drover.NotFound, "device gone")
	}
	if given[0].Vendor == "intel" {
		return driver.Devices{Env: map[string]string{"DROVER_DEVICES": "/dev/dri/renderD128"}}, nil
	}
	return driver.Devices{Runtime: "nvidia", Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": "GPU-1"}}, nil
}

func (*aMachine) Withheld() map[string]string {
	return map[string]string{"NVIDIA_VISIBLE_DEVICES": "void"}
}

// able is a driver that gives devices unless why says otherwise.
type able struct {
	driver.Driver
	why string
}

func (a able) GivesDevices() string { return a.why }

func deviceRequest(driverName string, d driver.Driver, env map[string]string, names ...string) *Request {
	task := &drover.Task{Name: "t", Driver: driverName, Env: env}
	own := &drover.AllocatedTaskResources{}
	for _, n := range names {
		own.Devices = append(own.Devices, &drover.AllocatedDeviceResource{Name: n})
	}
	alloc := &drover.Allocation{ID: "a", AllocatedResources: &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{
		"t": own, "other": {Devices: []*drover.AllocatedDeviceResource{{Name: "of another task"}}},
	}}}
	built := taskenv.Build(taskenv.Input{Alloc: alloc, Group: &drover.TaskGroup{Name: "g"}, Task: task})
	return &Request{Alloc: alloc, Task: task, Driver: d, Env: built}
}

// A task has the devices that were found for it, and their variables win over its own: it cannot ask for another's.
func TestDevices(t *testing.T) {
	t.Parallel()
	m := &aMachine{}
	r := deviceRequest("docker", able{}, map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"}, "t4")
	require.NoError(t, devices{m}.Prestart(t.Context(), r))
	require.Len(t, m.asked, 1)
	require.Equal(t, "nvidia", r.Devices.Runtime)
	require.Equal(t, "GPU-1", r.Env.Vars()["NVIDIA_VISIBLE_DEVICES"])

	for want, r := range map[string]*Request{
		"the driver mock_driver cannot": deviceRequest("mock_driver", nil, nil, "t4"),
		"it is far away":                deviceRequest("docker", able{why: "it is far away"}, nil, "t4"),
		"device gone":                   deviceRequest("docker", able{}, nil, "gone"),
	} {
		require.ErrorContains(t, devices{m}.Prestart(t.Context(), r), want)
	}
	require.ErrorContains(t, devices{}.Prestart(t.Context(), deviceRequest("docker", able{}, nil, "t4")), "does not offer devices any more")
}

// A docker task without devices gets none by a variable, its own or its image's.
func TestDevicesAreWithheld(t *testing.T) {
	t.Parallel()
	of := func(name string, env map[string]string) (*Request, error) {
		r := deviceRequest(name, able{}, env)
		return r, devices{&aMachine{}}.Prestart(t.Context(), r)
	}
	r, err := of("docker", nil)
	require.NoError(t, err)
	require.Equal(t, "void", r.Env.Vars()["NVIDIA_VISIBLE_DEVICES"])
	_, err = of("docker", map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"})
	require.ErrorContains(t, err, `env.NVIDIA_VISIBLE_DEVICES: this node gives its devices to tasks that ask for them in a device block`)
	r, err = of("raw_exec", map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"})
	require.NoError(t, err, "it is no container")
	require.Equal(t, "all", r.Env.Vars()["NVIDIA_VISIBLE_DEVICES"])
	require.NoError(t, devices{}.Prestart(t.Context(), deviceRequest("docker", able{}, map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"})))
}

// A docker task that was given a device of one vendor gets none of another's by a variable.
func TestDevicesOfOtherVendorsAreWithheld(t *testing.T) {
	t.Parallel()
	of := func(name string, env map[string]string) (*Request, error) {
		r := deviceRequest(name, able{}, env, "uhd")
		r.Alloc.AllocatedResources.Tasks["t"].Devices[0].Vendor = "intel"
		return r, devices{&aMachine{}}.Prestart(t.Context(), r)
	}
	r, err := of("docker", nil)
	require.NoError(t, err)
	require.Equal(t, "void", r.Env.Vars()["NVIDIA_VISIBLE_DEVICES"], "an image may say otherwise")
	require.Equal(t, "/dev/dri/renderD128", r.Env.Vars()["DROVER_DEVICES"])
	_, err = of("docker", map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	_, err = of("raw_exec", map[string]string{"NVIDIA_VISIBLE_DEVICES": "all"})
	require.NoError(t, err, "it is no container")
}
