package allocations

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/httpapi/nomad/services"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/registration"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/service"
)

// Stubs lists allocations in short; states says whether with the states of their tasks.
func Stubs(
	items func(answer.Query, answer.Snapshot) iter.Seq[*drover.Allocation], states bool,
) answer.Lister[*drover.Allocation, *drover.AllocationListStub] {
	return answer.Lister[*drover.Allocation, *drover.AllocationListStub]{
		On:      []answer.Source{{Table: tables.Allocs}},
		Items:   items,
		ID:      func(a *drover.Allocation) string { return a.ID },
		Created: func(a *drover.Allocation) uint64 { return a.CreateIndex },
		Sees:    Sees,
		Search: answer.Search[*drover.Allocation]{
			Words:  func(a *drover.Allocation) [4]string { return [4]string{a.Name, a.ID, a.NodeName, a.Namespace} },
			Status: func(a *drover.Allocation) string { return a.ClientStatus },
			Sorts: map[string]func(*drover.Allocation) (uint64, string){
				"name":     func(a *drover.Allocation) (uint64, string) { return 0, a.Name },
				"job":      func(a *drover.Allocation) (uint64, string) { return 0, a.JobID },
				"node":     func(a *drover.Allocation) (uint64, string) { return 0, a.NodeName },
				"status":   func(a *drover.Allocation) (uint64, string) { return 0, a.ClientStatus },
				"wanted":   func(a *drover.Allocation) (uint64, string) { return 0, a.DesiredStatus },
				"created":  func(a *drover.Allocation) (uint64, string) { return uint64(max(a.CreateTime, 0)), "" },
				"modified": func(a *drover.Allocation) (uint64, string) { return a.ModifyIndex, "" },
			},
		},
		View: func(a *drover.Allocation, _ answer.Snapshot) *drover.AllocationListStub {
			stub := a.Stub()
			if !states {
				stub.TaskStates = nil
			}
			return stub
		},
	}
}

// Sees reports whether the caller may read the allocation, wherever it is listed.
func Sees(c *rights.Caller, a *drover.Allocation) bool {
	return c.Namespace(a.Namespace, policy.ReadJob)
}

// listAllocations answers GET /v1/allocations; resources=true and task_states=false change what is shown.
func (f *face) listAllocations(w http.ResponseWriter, r *http.Request) error {
	resources, err := httpapi.BoolParam(r, "resources", false)
	if err != nil {
		return err
	}
	states, err := httpapi.BoolParam(r, "task_states", true)
	if err != nil {
		return err
	}
	l := Stubs(func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Allocation] {
		return s.Allocations(q.Namespace, q.Prefix)
	}, states)
	// The closure must call the view as it was, not itself.
	if short := l.View; resources {
		l.View = func(a *drover.Allocation, s answer.Snapshot) *drover.AllocationListStub {
			stub := short(a, s)
			stub.AllocatedResources = a.AllocatedResources
			return stub
		}
	}
	return l.Serve(f.Cluster, w, r)
}

// readAllocation answers GET /v1/allocation/ID.
func (f *face) readAllocation(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	find := func(_ answer.Query, s answer.Snapshot) (*View, uint64) {
		a := s.Allocation(id)
		if a == nil || !Sees(httpapi.CallerOf(r.Context()), a) {
			return nil, 0
		}
		return NewView(a), a.ModifyIndex
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Allocs, Key: id}, "alloc", find)
}

// allocation finds that of the path, for who has the capability in its namespace; else 404 with Nomad's text, or Forbidden.
func (f *face) allocation(r *http.Request, need policy.Capability) (*drover.Allocation, error) {
	return f.allocationOf(r, r.PathValue("id"), need)
}

// allocationOf finds the one with the id, as allocation does.
func (f *face) allocationOf(r *http.Request, id string, need policy.Capability) (*drover.Allocation, error) {
	if a := f.State.Snapshot().Allocation(id); a != nil {
		return a, httpapi.Allow(r.Context(), a.Namespace, need)
	}
	return nil, drover.Errorf(drover.NotFound, "Unknown allocation %q", id)
}

// workloads finds the node of an allocation, as allocation does.
func (f *face) workloads(r *http.Request, need policy.Capability) (*drover.Allocation, exchange.Workloads, error) {
	a, err := f.allocation(r, need)
	if err != nil {
		return nil, nil, err
	}
	n, err := f.Nodes.Workloads(a.NodeID)
	return a, n, err
}

// stopAllocation answers PUT /v1/allocation/ID/stop: the allocation is replaced by another.
func (f *face) stopAllocation(w http.ResponseWriter, r *http.Request) error {
	noDelay, err := httpapi.BoolParam(r, "no_shutdown_delay", false)
	if err != nil {
		return err
	}
	reschedule, err := httpapi.BoolParam(r, "reschedule", false)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if a := f.State.Snapshot().Allocation(id); a != nil { // of one that is not known yet the intake says so
		if err := httpapi.Allow(r.Context(), a.Namespace, policy.AllocLifecycle); err != nil {
			return err
		}
	}
	o, err := f.Intake.StopAllocation(r.Context(), id, noDelay, reschedule)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct {
		EvalID string
		Index  uint64
	}{o.EvalID, o.Index})
}

// allocationServices answers GET /v1/allocation/ID/services with the registrations of an allocation.
func (f *face) allocationServices(w http.ResponseWriter, r *http.Request) error {
	a, err := f.allocation(r, policy.ReadJob)
	if err != nil {
		return err
	}
	return services.List(func(_ answer.Query, s answer.Snapshot) iter.Seq[*service.Registration] {
		return s.RegistrationsOf(a.ID)
	}).Serve(f.Cluster, w, r)
}

// allocationChecks answers GET /v1/client/allocation/ID/checks with what the checks of its services found last, by their
// ids; null if it has none.
func (f *face) allocationChecks(w http.ResponseWriter, r *http.Request) error {
	a, err := f.allocation(r, policy.ReadJob)
	if err != nil {
		return err
	}
	if !registration.Any(a) {
		return f.Reply(w, r, nil)
	}
	_, node, err := f.workloads(r, policy.ReadJob)
	if err != nil {
		return err
	}
	found, err := node.AllocChecks(r.Context(), a.ID)
	if err != nil {
		return err
	}
	return f.Reply(w, r, found)
}

// allocationStats answers GET /v1/client/allocation/ID/stats with a sample of its tasks.
func (f *face) allocationStats(w http.ResponseWriter, r *http.Request) error {
	a, node, err := f.workloads(r, policy.ReadJob)
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
	return f.Reply(w, r, usage)
}

// checkTask refuses a task that the allocation does not have; "" is fine.
func checkTask(a *drover.Allocation, task string) error {
	if task == "" || a.Job == nil {
		return nil
	}
	// A group that the job does not have is left to the node, which knows what runs.
	if g := a.Job.Group(a.TaskGroup); g != nil && g.Task(task) == nil {
		return drover.Errorf(drover.NotFound, "task %q not found in allocation", task)
	}
	return nil
}

// collectAllocation answers PUT /v1/client/allocation/ID/gc: the node removes the folder of an ended allocation.
func (f *face) collectAllocation(w http.ResponseWriter, r *http.Request) error {
	a, node, err := f.workloads(r, policy.GCAllocation)
	if err != nil {
		return err
	}
	if err := node.CollectGarbage(r.Context(), a.ID); err != nil {
		return err
	}
	return f.Reply(w, r, struct{}{})
}

// restartAllocation answers PUT /v1/client/allocation/ID/restart, of one task, all that run, or all.
func (f *face) restartAllocation(w http.ResponseWriter, r *http.Request) error {
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
	a, node, err := f.workloads(r, policy.AllocLifecycle)
	if err != nil {
		return err
	}
	if err := checkTask(a, b.TaskName); err != nil {
		return err
	}
	if err := node.RestartTask(r.Context(), a.ID, b.TaskName, b.AllTasks); err != nil {
		return err
	}
	return f.Done(w, r)
}

// signalAllocation answers PUT /v1/client/allocation/ID/signal, of one task or all.
func (f *face) signalAllocation(w http.ResponseWriter, r *http.Request) error {
	var b struct{ Task, TaskName, Signal string }
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	// Nomad's clients use either name.
	if b.Task == "" {
		b.Task = b.TaskName
	}
	if b.Signal == "" {
		return drover.Errorf(drover.Invalid, "Signal: a signal's name is needed, such as SIGHUP")
	}
	a, node, err := f.workloads(r, policy.AllocLifecycle)
	if err != nil {
		return err
	}
	if err := checkTask(a, b.Task); err != nil {
		return err
	}
	if err := node.SignalTask(r.Context(), a.ID, b.Task, b.Signal); err != nil {
		return err
	}
	return f.Done(w, r)
}
