package chaos

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// steady is a service that runs all the time.
const (
	steady      = "steady"
	steadyCount = 10
)

func (w *world) steadyJob() *drover.Job {
	return shellJob(steady, drover.JobTypeService, steadyCount, w.diary()+"; exec sleep 1000000")
}

// allocations are those of a job, as the leader has them.
func (w *world) allocations(job string) (list []drover.AllocationListStub, err error) {
	for try := range 3 {
		_, err = w.call(try, http.MethodGet, "/v1/job/"+job+"/allocations", nil, nil, &list, patience)
		if err == nil {
			return list, nil
		}
	}
	return nil, err
}

// began is where an allocation ran before anything broke, and how often its task had been started again: on a machine with much to do
// a start may fail.
type began struct {
	node     string
	restarts uint64
}

func restarts(a drover.AllocationListStub) uint64 {
	if t := a.TaskStates["t"]; t != nil {
		return t.Restarts
	}
	return 0
}

// baseline are the steady service's allocations before anything broke.
func (w *world) baseline() error {
	list, err := w.allocations(steady)
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.ClientStatus == drover.AllocClientRunning {
			w.steady[a.ID] = began{node: a.NodeName, restarts: restarts(a)}
		}
	}
	return nil
}

// checkSteady sees that what ran before on nodes that were never struck runs still, and was never started again.
func (w *world) checkSteady() {
	list, err := w.allocations(steady)
	if err != nil {
		w.breach(promiseNodes, "the allocations of %s: %v", steady, err)
		return
	}
	now := map[string]drover.AllocationListStub{}
	for _, a := range list {
		now[a.ID] = a
	}
	kept, moved := 0, 0
	for id, from := range w.steady {
		a := now[id]
		switch {
		case a.ClientStatus == drover.AllocClientRunning && a.TaskStates["t"] != nil && restarts(a) == from.restarts:
			kept++
		case w.faulted(from.node, 0, w.now()):
			moved++
		default:
			w.breach(promiseAllocations, "allocation %s ran on %s, which was never struck, and is %s (%s): %+v", id, from.node,
				a.ClientStatus, a.ClientDescription, a.TaskStates["t"])
		}
	}
	w.figure("%d of %d allocations ran all the time, %d went with their node", kept, len(w.steady), moved)
}

// checkNodes reads what tasks wrote about where they ran.
func (w *world) checkNodes() {
	text, err := os.ReadFile(w.ran)
	if err != nil {
		w.breach(promiseOneNode, "what tasks wrote: %v", err)
		return
	}
	at := map[string]string{}
	for line := range strings.Lines(string(text)) {
		id, node, _ := strings.Cut(strings.TrimSpace(line), " ")
		if was, ok := at[id]; ok && was != node {
			w.breach(promiseOneNode, "allocation %s ran on %s and on %s", id, was, node)
		}
		at[id] = node
	}
	w.figure("%d allocations ran", len(at))
}

// finish waits until all that was registered has run.
func (w *world) finish() {
	limit := 10 * time.Second
	if promiseNodes {
		limit = 2 * time.Minute
	}
	left := -1
	w.eventually(limit, func() bool {
		var jobs []drover.JobListStub
		if _, err := w.call(0, http.MethodGet, "/v1/jobs", nil, nil, &jobs, patience); err != nil {
			return false
		}
		left = 0
		for _, j := range jobs {
			if _, mine := w.written.jobs[j.ID]; (mine || j.ParentID == parent) && j.Status != drover.JobStatusDead {
				left++
			}
		}
		return left == 0
	})
	if left != 0 {
		w.breach(promiseNodes, "%d jobs that run once did not end (-1: nobody could tell)", left)
	}
}

// clear ends all that runs, so that nothing is left on the machine.
func (w *world) clear() error {
	all := url.Values{"purge": {"true"}}
	ok := w.eventually(time.Minute, func() bool {
		var jobs []drover.JobListStub
		if _, err := w.call(0, http.MethodGet, "/v1/jobs", nil, nil, &jobs, patience); err != nil {
			return false
		}
		_, _ = w.call(0, http.MethodDelete, "/v1/environment/"+environment, nil, nil, nil, patience) // it may be gone
		for _, j := range jobs {
			if _, err := w.call(0, http.MethodDelete, "/v1/job/"+url.PathEscape(j.ID), all, nil, nil, patience); err != nil {
				return false
			}
		}
		var allocs []drover.AllocationListStub
		if _, err := w.call(0, http.MethodGet, "/v1/allocations", nil, nil, &allocs, patience); err != nil {
			return false
		}
		for _, a := range allocs {
			if a.ClientStatus == drover.AllocClientRunning || a.ClientStatus == drover.AllocClientPending {
				return false
			}
		}
		return true
	})
	if !ok {
		return fmt.Errorf("the jobs could not be ended")
	}
	return nil
}
