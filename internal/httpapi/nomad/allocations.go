package nomad

import (
	"iter"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

// stubLister lists allocations in short.
func stubLister(items func(query, Snapshot) iter.Seq[*drover.Allocation], states bool) lister[*drover.Allocation, *drover.AllocationListStub] {
	return lister[*drover.Allocation, *drover.AllocationListStub]{
		on:      []source{{table: tables.Allocs}},
		items:   items,
		id:      func(a *drover.Allocation) string { return a.ID },
		created: func(a *drover.Allocation) uint64 { return a.CreateIndex },
		view: func(a *drover.Allocation, _ Snapshot) *drover.AllocationListStub {
			stub := a.Stub()
			if !states {
				stub.TaskStates = nil
			}
			return stub
		},
	}
}

func (f *Face) listAllocations(w http.ResponseWriter, r *http.Request) error {
	resources, err := httpapi.BoolParam(r, "resources", false)
	if err != nil {
		return err
	}
	states, err := httpapi.BoolParam(r, "task_states", true)
	if err != nil {
		return err
	}
	l := stubLister(func(q query, s Snapshot) iter.Seq[*drover.Allocation] {
		return s.Allocations(q.namespace, q.prefix)
	}, states)
	if short := l.view; resources {
		l.view = func(a *drover.Allocation, s Snapshot) *drover.AllocationListStub {
			stub := short(a, s)
			stub.AllocatedResources = a.AllocatedResources
			return stub
		}
	}
	return l.serve(f, w, r)
}

func (f *Face) readAllocation(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return single(f, w, r, source{table: tables.Allocs, key: id}, "alloc", func(_ query, s Snapshot) (*allocationView, uint64) {
		a := s.Allocation(id)
		if a == nil {
			return nil, 0
		}
		return viewAllocation(a), a.ModifyIndex
	})
}

// allocation finds one to ask its node about, else 404 with Nomad's text.
func (f *Face) allocation(id string) (*drover.Allocation, error) {
	if a := f.State.Snapshot().Allocation(id); a != nil {
		return a, nil
	}
	return nil, drover.Errorf(drover.NotFound, "Unknown allocation %q", id)
}

// workloads finds the node of an allocation.
func (f *Face) workloads(id string) (*drover.Allocation, exchange.Workloads, error) {
	a, err := f.allocation(id)
	if err != nil {
		return nil, nil, err
	}
	n, err := f.Nodes.Workloads(a.NodeID)
	return a, n, err
}

func (f *Face) stopAllocation(w http.ResponseWriter, r *http.Request) error {
	noDelay, err := httpapi.BoolParam(r, "no_shutdown_delay", false)
	if err != nil {
		return err
	}
	reschedule, err := httpapi.BoolParam(r, "reschedule", false)
	if err != nil {
		return err
	}
	o, err := f.Intake.StopAllocation(r.Context(), r.PathValue("id"), noDelay, reschedule)
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct {
		EvalID string
		Index  uint64
	}{o.EvalID, o.Index})
}

func (f *Face) allocationServices(http.ResponseWriter, *http.Request) error {
	return drover.Errorf(drover.NotImplemented, "service registrations are not implemented yet")
}

// allocationChecks answers with the results of the service checks of an allocation: of one without checks there are
// none, which Nomad says as null.
func (f *Face) allocationChecks(w http.ResponseWriter, r *http.Request) error {
	a, err := f.allocation(r.PathValue("id"))
	if err != nil {
		return err
	}
	if a.Job != nil && checked(a.Job.Group(a.TaskGroup)) {
		return drover.Errorf(drover.NotImplemented, "service checks are not implemented yet")
	}
	return f.reply(w, r, nil)
}

// checked reports whether services of a group or of its tasks have checks.
func checked(g *drover.TaskGroup) bool {
	if g == nil {
		return false
	}
	services := slices.Clone(g.Services)
	for _, t := range g.Tasks {
		services = append(services, t.Services...)
	}
	return slices.ContainsFunc(services, func(s *drover.Service) bool { return len(s.Checks) > 0 })
}

func (f *Face) allocationStats(w http.ResponseWriter, r *http.Request) error {
	a, node, err := f.workloads(r.PathValue("id"))
	if err != nil {
		return err
	}
	task := r.URL.Query().Get("task")
	if err := checkTask(a, task); err != nil {
		return err
	}
	usage, err := node.AllocStats(r.Context(), a.ID, task)
	if err != nil {
		return err
	}
	return f.reply(w, r, usage)
}

// checkTask refuses a task that the allocation does not have; "" is fine.
func checkTask(a *drover.Allocation, task string) error {
	if task == "" || a.Job == nil {
		return nil
	}
	if g := a.Job.Group(a.TaskGroup); g != nil && g.Task(task) == nil {
		return drover.Errorf(drover.NotFound, "task %q not found in allocation", task)
	}
	return nil
}

func (f *Face) collectAllocation(w http.ResponseWriter, r *http.Request) error {
	a, node, err := f.workloads(r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := node.CollectGarbage(r.Context(), a.ID); err != nil {
		return err
	}
	return f.reply(w, r, struct{}{})
}

func (f *Face) restartAllocation(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		TaskName string
		AllTasks bool
	}
	if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
		return err
	}
	if b.TaskName != "" && b.AllTasks {
		return drover.Errorf(drover.Invalid, "TaskName and AllTasks cannot be given together")
	}
	a, node, err := f.workloads(r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := checkTask(a, b.TaskName); err != nil {
		return err
	}
	if err := node.RestartTask(r.Context(), a.ID, b.TaskName, b.AllTasks); err != nil {
		return err
	}
	return f.done(w, r)
}

func (f *Face) signalAllocation(w http.ResponseWriter, r *http.Request) error {
	var b struct{ Task, TaskName, Signal string }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if b.Task == "" {
		b.Task = b.TaskName
	}
	if b.Signal == "" {
		return drover.Errorf(drover.Invalid, "Signal: a signal's name is needed, such as SIGHUP")
	}
	a, node, err := f.workloads(r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := checkTask(a, b.Task); err != nil {
		return err
	}
	if err := node.SignalTask(r.Context(), a.ID, b.Task, b.Signal); err != nil {
		return err
	}
	return f.done(w, r)
}
