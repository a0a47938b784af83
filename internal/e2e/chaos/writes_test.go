package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/tenancy"
)

// shellJob is a job of one group whose tasks are lines of a shell, on the machine itself.
func shellJob(id, kind string, count int, script string) *drover.Job {
	return &drover.Job{ID: id, Type: kind, TaskGroups: []*drover.TaskGroup{{
		Name: "g", Count: &count, EphemeralDisk: &drover.EphemeralDisk{SizeMB: 10}, Tasks: []*drover.Task{{
			Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/sh", "args": []string{"-c", script}},
			Resources: &drover.Resources{CPU: 1, MemoryMB: 10}, LogConfig: &drover.LogConfig{MaxFiles: 1, MaxFileSizeMB: 1},
		}},
	}}}
}

// diary has a task write where it runs: its allocation's id and the node's name, a line each time it starts.
func (w *world) diary() string { return "echo $NOMAD_ALLOC_ID ${node.unique.name} >> " + w.ran }

// written is what was acknowledged.
type written struct {
	mu       sync.Mutex                 // guards what follows
	jobs     map[string]uint64          // the index of each, by id
	unsure   map[string]bool            // jobs of which it is not known
	children map[string]map[string]bool // that were answered, by token
	numbers  [3][]number                // that were written into a namespace through each server
}

// number is one that a prober wrote.
type number struct {
	value     int
	call, end time.Duration // end is 0 while nobody knows what came of it
}

func probed(server int) string { return fmt.Sprint("probe", server) }

// probe writes numbers into a namespace through one server. It does not wait for one answer to send the next: what it
// measures is how soon any write is acknowledged again.
func (w *world) probe(server int) {
	name := probed(server)
	var all sync.WaitGroup
	defer all.Wait()
	for n := 1; w.pause(100 * time.Millisecond); n++ {
		all.Go(func() { // ends with its limit
			k := w.numbered(server, n)
			body := tenancy.Namespace{Name: name, Description: fmt.Sprint(n)}
			if _, err := w.call(server, http.MethodPut, "/v1/namespace/"+name, nil, body, nil, 3*time.Second); err == nil {
				w.written.mu.Lock()
				w.written.numbers[server][k].end = w.now()
				w.written.mu.Unlock()
			}
		})
	}
}

// numbered notes that a number is written, and returns its place.
func (w *world) numbered(server, n int) int {
	w.written.mu.Lock()
	defer w.written.mu.Unlock()
	w.written.numbers[server] = append(w.written.numbers[server], number{value: n, call: w.now()})
	return len(w.written.numbers[server]) - 1
}

// acks are the numbers that were acknowledged, in the order of that.
func (w *world) acks() (out []number) {
	for _, list := range w.written.numbers {
		for _, n := range list {
			if n.end > 0 {
				out = append(out, n)
			}
		}
	}
	slices.SortFunc(out, func(a, b number) int { return int(a.end - b.end) })
	return out
}

// checkNumber sees that a namespace has a number that no acknowledged one was written after.
func (w *world) checkNumber(server int, space int, have int) {
	list := w.written.numbers[space]
	at := slices.IndexFunc(list, func(n number) bool { return n.value == have })
	if at < 0 {
		w.breach(promiseWrites, "%s has %d in %s, which nobody wrote", w.servers[server].name, have, probed(space))
		return
	}
	for _, n := range list {
		if list[at].end > 0 && n.end > 0 && n.call > list[at].end {
			w.breach(promiseWrites, "%s has %d in %s, and %d was written after it and acknowledged", w.servers[server].name, have,
				probed(space), n.value)
			return
		}
	}
}

// registers registers jobs that run once, through one server and then any other until it is acknowledged.
func (w *world) registers(server int, chance *rand.Rand) {
	for n := 0; w.pause(time.Duration(300+chance.IntN(400)) * time.Millisecond); n++ {
		w.register(server, shellJob(fmt.Sprintf("once-%d-%d", server, n), drover.JobTypeBatch, 1, w.diary()))
	}
}

// register registers a job of its own, and remembers whether that was acknowledged.
func (w *world) register(server int, j *drover.Job) {
	job := map[string]any{"Job": j}
	w.written.mu.Lock()
	w.written.unsure[j.ID] = true
	w.written.mu.Unlock()
	for try := range 3 {
		var out struct{ JobModifyIndex uint64 }
		if _, err := w.call((server+try)%3, http.MethodPut, "/v1/jobs", nil, job, &out, patience); err == nil {
			w.written.mu.Lock()
			w.written.jobs[j.ID] = out.JobModifyIndex
			delete(w.written.unsure, j.ID)
			w.written.mu.Unlock()
			return
		}
	}
}

const parent = "parent"

// dispatches starts children of a job, each with a token, and asks again with the token until it is answered. Now and then
// another client asks with the same token at the same time.
func (w *world) dispatches(server int, chance *rand.Rand) {
	for n := 0; w.pause(time.Duration(400+chance.IntN(500)) * time.Millisecond); n++ {
		token := fmt.Sprintf("token-%d-%d", server, n)
		ask := func(first int) {
			for try := range 4 {
				var out struct{ DispatchedJobID string }
				_, err := w.call((first+try)%3, http.MethodPut, "/v1/job/"+parent+"/dispatch", url.Values{"idempotency_token": {token}},
					map[string]any{"Meta": map[string]string{"token": token}}, &out, patience)
				if err == nil {
					w.dispatched(token, out.DispatchedJobID)
					return
				}
			}
		}
		var other sync.WaitGroup
		if chance.IntN(3) == 0 {
			other.Go(func() { ask(server + 1) }) // ends with its tries
		}
		ask(server)
		other.Wait()
	}
}

func (w *world) dispatched(token, child string) {
	w.written.mu.Lock()
	defer w.written.mu.Unlock()
	if w.written.children[token] == nil {
		w.written.children[token] = map[string]bool{}
	}
	w.written.children[token][child] = true
}

// stale has a server answer from what it has itself.
var stale = url.Values{"stale": {"true"}}

// checkWrites compares what each server has with what was acknowledged.
func (w *world) checkWrites() {
	for i, s := range w.servers {
		have := map[string]uint64{}
		var jobs []drover.JobListStub
		if _, err := w.call(i, http.MethodGet, "/v1/jobs", url.Values{"stale": {"true"}, "meta": {"true"}}, nil, &jobs, time.Minute); err != nil {
			w.breach(promiseWrites, "the jobs of %s: %v", s.name, err)
			continue
		}
		for _, j := range jobs {
			have[j.ID] = j.JobModifyIndex
		}
		for id, index := range w.written.jobs {
			if got, ok := have[id]; !ok {
				w.breach(promiseWrites, "%s lacks job %s, which was acknowledged with index %d", s.name, id, index)
			} else if got < index {
				w.breach(promiseWrites, "%s has job %s at index %d, which was acknowledged with %d", s.name, id, got, index)
			}
		}
		w.checkTokens(s.name, jobs)
		for space := range w.servers {
			var got tenancy.Namespace
			have := 0
			_, err := w.call(i, http.MethodGet, "/v1/namespace/"+probed(space), stale, nil, &got, time.Minute)
			if _, scan := fmt.Sscan(got.Description, &have); err != nil || scan != nil {
				w.breach(promiseWrites, "%s has %q in %s (%v)", s.name, got.Description, probed(space), err)
				continue
			}
			w.checkNumber(i, space, have)
		}
	}
	w.figure("%d jobs and %d numbers acknowledged, %d jobs of which it is not known", len(w.written.jobs), len(w.acks()),
		len(w.written.unsure))
}

// parentJob is the job whose children are dispatched.
func (w *world) parentJob() *drover.Job {
	job := shellJob(parent, drover.JobTypeBatch, 1, w.diary())
	job.ParameterizedJob = &drover.ParameterizedJobConfig{MetaOptional: []string{"token"}}
	return job
}

// checkTokens sees that each token has at most one child, and that it is the one that was answered.
func (w *world) checkTokens(server string, jobs []drover.JobListStub) {
	children := map[string][]string{}
	for _, j := range jobs {
		if j.ParentID == parent {
			children[j.Meta["token"]] = append(children[j.Meta["token"]], j.ID)
		}
	}
	for token, list := range children {
		if len(list) > 1 {
			w.breach(promiseTokens, "%s: %s has %d children: %v", server, token, len(list), list)
		}
	}
	for token, answered := range w.written.children {
		if len(answered) > 1 {
			w.breach(promiseTokens, "%s was answered with %v", token, answered)
		}
		for child := range answered {
			if !slices.Contains(children[token], child) {
				w.breach(promiseWrites, "%s lacks %s, which was acknowledged for %s: it has %v", server, child, token, children[token])
			}
		}
	}
}
