package link

import (
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// jobs encodes jobs for nodes, each once: thousands of nodes may run the same one, and a node runs it many times.
type jobs struct {
	mu    sync.Mutex
	known map[*drover.Job][]byte // guarded by mu
}

// jobsKnown is how many jobs are kept encoded.
const jobsKnown = 256

// encoded returns the job's bytes, which must not be changed.
func (j *jobs) encoded(job *drover.Job) ([]byte, error) {
	j.mu.Lock()
	data := j.known[job]
	j.mu.Unlock()
	if data != nil {
		return data, nil
	}
	data, err := msgpack{}.Marshal(job)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.known) >= jobsKnown || j.known == nil {
		j.known = map[*drover.Job][]byte{}
	}
	j.known[job] = data
	return data, nil
}

// reply makes an assignment ready to be sent, with the jobs apart from the allocations if the node understands that.
func (j *jobs) reply(a exchange.Assignment, apart bool) (*pullReply, error) {
	r := &pullReply{
		Index: a.Index, State: a.State, Age: a.Age, Allocs: a.Allocs, Meta: a.Meta, Volumes: a.Volumes, SignedBy: a.SignedBy,
		Signers: a.Signers,
	}
	if !apart {
		return r, nil
	}
	r.Allocs, r.JobOf = make([]*drover.Allocation, len(a.Allocs)), make([]int, len(a.Allocs))
	slim, places := make([]drover.Allocation, len(a.Allocs)), map[*drover.Job]int{}
	for i, x := range a.Allocs {
		slim[i], r.Allocs[i], r.JobOf[i] = *x, &slim[i], -1
		slim[i].Job, slim[i].Metrics = nil, nil // a node does not ask why it was chosen
		if x.Job == nil {
			continue
		}
		place, known := places[x.Job]
		if !known {
			data, err := j.encoded(x.Job)
			if err != nil {
				return nil, err
			}
			place = len(r.Jobs)
			places[x.Job], r.Jobs = place, append(r.Jobs, data)
		}
		r.JobOf[i] = place
	}
	return r, nil
}

// assignment puts a reply together again. Allocations of the same job share it. Errors: Invalid if it does not fit together.
func (r *pullReply) assignment() (exchange.Assignment, error) {
	a := exchange.Assignment{
		Index: r.Index, State: r.State, Age: r.Age, Allocs: r.Allocs, Meta: r.Meta, Volumes: r.Volumes, SignedBy: r.SignedBy,
		Signers: r.Signers,
	}
	decoded := make([]*drover.Job, len(r.Jobs))
	for i, data := range r.Jobs {
		decoded[i] = new(drover.Job)
		if err := (msgpack{}).Unmarshal(data, decoded[i]); err != nil {
			return exchange.Assignment{}, drover.Errorf(drover.Invalid, "link: the job of an assignment: %w", err)
		}
	}
	for i, place := range r.JobOf {
		switch {
		case i >= len(r.Allocs) || place >= len(decoded):
			return exchange.Assignment{}, drover.Errorf(drover.Invalid, "link: an assignment names a job that it does not have")
		case place >= 0:
			r.Allocs[i].Job = decoded[place]
		}
	}
	return a, nil
}
