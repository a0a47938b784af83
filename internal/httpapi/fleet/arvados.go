package fleet

import (
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Arvados' dispatcher calls a piece of work a container. Ours are allocations, under their ids, and waiting classes of
// work, under the names of their jobs and groups.

// container is a piece of work in Arvados' shape. State is one of Queued, Locked and Running; Count is how many of
// a waiting class there are.
type container struct {
	UUID     string         `json:"uuid"`
	Name     string         `json:"name"`
	State    string         `json:"state"`
	Priority int            `json:"priority"`
	Runtime  runtimeNeeds   `json:"runtime_constraints"`
	Count    int            `json:"count,omitempty"`
	Extra    map[string]any `json:"scheduling_parameters"`
}

// runtimeNeeds are what a piece of work takes: whole cores, bytes of memory, and MHz, which Arvados does not have.
type runtimeNeeds struct {
	VCPUs int64 `json:"vcpus"`
	RAM   int64 `json:"ram"`
	MHz   int64 `json:"mhz"`
}

// queueEntry is one line of the dispatcher's queue. InstanceTypes is always empty: which machine to buy is decided
// for all of a pool's work together.
type queueEntry struct {
	Container         container    `json:"container"`
	InstanceResources runtimeNeeds `json:"instance_resources"`
	InstanceTypes     []string     `json:"instance_types"`
	FirstSeenAt       time.Time    `json:"first_seen_at"`
	SchedulingStatus  string       `json:"scheduling_status"`
}

// instanceView is a machine in Arvados' shape. The price is the machine's, in $ for an hour.
type instanceView struct {
	Instance             string    `json:"instance"`
	Address              string    `json:"address"`
	Price                float64   `json:"price"`
	ArvadosInstanceType  string    `json:"arvados_instance_type"`
	ProviderInstanceType string    `json:"provider_instance_type"`
	LastContainerUUID    string    `json:"last_container_uuid"`
	LastBusy             time.Time `json:"last_busy"`
	RunningContainers    []string  `json:"running_container_uuids"`
	WorkerState          string    `json:"worker_state"`
	IdleBehavior         string    `json:"idle_behavior"`
}

// items is the envelope of Arvados' lists.
type items[T any] struct {
	Items []T `json:"items"`
}

// needs rounds up to whole cores of 1,000 MHz, since Arvados counts no shares of a core.
func needs(c drover.Capacity) runtimeNeeds {
	return runtimeNeeds{VCPUs: (c.CPU + 999) / 1000, RAM: c.MemoryMB << 20, MHz: c.CPU}
}

// queue lists the waiting classes first, then the allocations on the fleet's machines. One that is placed but does
// not run yet is Locked, as a container that a dispatcher has taken.
func (f *Face) queue(r *http.Request) ([]queueEntry, error) {
	waiting, err := f.Fleet.Waiting(r.Context(), "")
	if err != nil {
		return nil, err
	}
	list := []queueEntry{}
	for _, w := range waiting {
		list = append(list, queueEntry{
			Container: container{
				UUID: w.Class, Name: w.Class, State: "Queued", Priority: w.Priority, Runtime: needs(w.Each),
				Count: w.Count,
			},
			InstanceResources: needs(w.Each), InstanceTypes: []string{}, FirstSeenAt: w.Since, SchedulingStatus: w.Reason,
		})
	}
	running, err := f.Work.Running(r.Context())
	if err != nil {
		return nil, err
	}
	for _, a := range running {
		state := "Locked"
		if a.ClientStatus == drover.AllocClientRunning {
			state = "Running"
		}
		e := queueEntry{
			Container:     container{UUID: a.ID, Name: a.Name, State: state, Runtime: needs(a.AllocatedResources.Used())},
			InstanceTypes: []string{}, FirstSeenAt: time.Unix(0, a.CreateTime).UTC(),
		}
		if a.Job != nil {
			e.Container.Priority = a.Job.Priority
		}
		e.InstanceResources = e.Container.Runtime
		list = append(list, e)
	}
	return list, nil
}

// containers answers GET /arvados/v1/dispatch/containers.
func (f *Face) containers(w http.ResponseWriter, r *http.Request) error {
	list, err := f.queue(r)
	return answer(w, r, items[queueEntry]{list}, err)
}

// container answers for one piece of work, by its UUID. It renders the whole queue for it, because operators ask
// seldom.
func (f *Face) container(w http.ResponseWriter, r *http.Request) error {
	id := r.FormValue("container_uuid")
	list, err := f.queue(r)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Container.UUID == id {
			return answer(w, r, e, nil)
		}
	}
	return drover.Errorf(drover.NotFound, "container not found: %q", id)
}

// killContainer stops an allocation without a replacement. A waiting class cannot be killed: that is 404.
func (f *Face) killContainer(w http.ResponseWriter, r *http.Request) error {
	id, why := r.FormValue("container_uuid"), r.FormValue("reason")
	if id == "" {
		return drover.Errorf(drover.Invalid, "container_uuid parameter not provided")
	}
	if err := f.Work.StopAllocation(r.Context(), id, why); err != nil {
		return err
	}
	return answer(w, r, struct{}{}, nil)
}

// arvadosInstances lists the machines with the allocations on each. LastContainerUUID is only known while something
// runs.
func (f *Face) arvadosInstances(w http.ResponseWriter, r *http.Request) error {
	list, err := f.Fleet.Instances(r.Context(), "")
	if err != nil {
		return err
	}
	running, err := f.Work.Running(r.Context())
	if err != nil {
		return err
	}
	on := map[string][]string{}
	for _, a := range running {
		on[a.NodeID] = append(on[a.NodeID], a.ID)
	}
	out := []instanceView{}
	for k := range list {
		i := &list[k]
		v := instanceView{
			Instance: i.ProviderID, Address: i.Address, Price: i.Price, ArvadosInstanceType: i.Type, ProviderInstanceType: i.Type,
			LastBusy: i.IdleAt, WorkerState: workerState(i), IdleBehavior: string(i.Behavior), RunningContainers: []string{},
		}
		if ids := on[i.NodeID]; i.NodeID != "" && len(ids) > 0 {
			v.RunningContainers, v.LastContainerUUID = ids, ids[len(ids)-1]
		}
		out = append(out, v)
	}
	return answer(w, r, items[instanceView]{out}, nil)
}

// workerState says the state in Arvados' words.
func workerState(i *fleet.Instance) string {
	switch i.State {
	case fleet.InstancePlanned, fleet.InstanceCreating, fleet.InstanceBooting, fleet.InstanceRegistered:
		return "booting"
	case fleet.InstanceActive, fleet.InstanceDraining:
		if i.Busy() {
			return "running"
		}
		return "idle"
	case fleet.InstanceDestroying, fleet.InstanceGone:
		return "shutdown"
	default:
		return "unknown"
	}
}

// arvadosOperate is operate in Arvados' form: parameters come as a form or in the query. Without a reason the audit names
// the path, so that it shows where the order came from.
func (f *Face) arvadosOperate(w http.ResponseWriter, r *http.Request) error {
	id := r.FormValue("instance_id")
	if id == "" {
		return drover.Errorf(drover.Invalid, "instance_id parameter not provided")
	}
	why := r.FormValue("reason")
	if why == "" {
		why = "asked for over " + strings.TrimSuffix(r.URL.Path, "/"+r.PathValue("word"))
	}
	if err := f.steer(r, id, r.PathValue("word"), why); err != nil {
		return err
	}
	return answer(w, r, struct{}{}, nil)
}
