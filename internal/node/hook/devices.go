package hook

import (
	"context"
	"maps"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
)

// Devices says what tasks need to use the machine's devices; node/device does.
type Devices interface {
	// Reserve returns what a task needs to use the devices that it was given. Errors: NotFound.
	Reserve(given []*drover.AllocatedDeviceResource) (driver.Devices, error)
	// Withheld are the variables that keep docker's runtimes from giving devices to tasks that did not get any from the scheduler.
	Withheld() map[string]string
}

// devices gives a task the devices that the scheduler found for it.
type devices struct{ machine Devices }

func (devices) Name() string { return "devices" }

// Once is false: what a driver gets is not stored with the task, and each start needs it.
func (devices) Once() bool { return false }

// Prestart adds the devices to the request, for the driver, and their variables, which win over the task's own.
func (h devices) Prestart(_ context.Context, r *Request) error {
	given := givenDevices(r)
	if len(given) == 0 {
		return h.withhold(r, nil)
	}
	able, ok := r.Driver.(driver.Devicer)
	if !ok {
		return &Failure{Err: drover.Errorf(drover.NotImplemented,
			"resources.device: the driver %s cannot give a task devices: docker, sandbox and raw_exec can", r.Task.Driver)}
	}
	if why := able.GivesDevices(); why != "" {
		return &Failure{Err: drover.Errorf(drover.NotImplemented, "resources.device: %s", why)}
	}
	if h.machine == nil {
		return &Failure{Err: drover.Errorf(drover.NotFound, "resources.device: this node does not offer devices any more")}
	}
	got, err := h.machine.Reserve(given)
	if err != nil {
		return &Failure{Err: err} // another node may have one that is well
	}
	if err := h.withhold(r, got.Env); err != nil {
		return err
	}
	r.Devices, r.Env = got, r.Env.With(got.Env)
	return nil
}

// withhold keeps a docker task from devices of vendors of whom it was given none: their container runtimes give what a variable asks for,
// and images set it, too. given are the variables of the devices that it has.
func (h devices) withhold(r *Request, given map[string]string) error {
	if h.machine == nil || r.Task.Driver != "docker" && r.Task.Driver != "podman" {
		return nil
	}
	withheld := maps.Clone(h.machine.Withheld())
	maps.DeleteFunc(withheld, func(name, _ string) bool { _, has := given[name]; return has })
	for name, none := range withheld {
		if asked, set := r.Env.Vars()[name]; set && asked != "" && asked != none {
			return &Failure{Err: drover.Errorf(drover.Forbidden,
				"env.%s: this node gives its devices to tasks that ask for them in a device block of their resources; this one asks for %q",
				name, asked)}
		}
	}
	if len(withheld) > 0 {
		r.Env = r.Env.With(withheld)
	}
	return nil
}

// givenDevices are those that the scheduler found for the task.
func givenDevices(r *Request) []*drover.AllocatedDeviceResource {
	if a := r.Alloc.AllocatedResources; a != nil && a.Tasks[r.Task.Name] != nil {
		return a.Tasks[r.Task.Name].Devices
	}
	return nil
}
