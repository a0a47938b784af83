package link

import (
	"strconv"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/link/wire"
)

// answers makes the answers of a server to its nodes. It encodes each job once: thousands of nodes may run the same one, and a node
// runs it many times. It sends an allocation once in each of its versions.
type answers struct {
	mu      sync.Mutex // guards what follows
	known   map[*drover.Job][]byte
	history any    // of the newest answer
	name    string // of that history, and of no other one of any server
}

// jobsKnown is how many jobs are kept encoded.
const jobsKnown = 256

// encoded returns the job's bytes, which must not be changed.
func (s *answers) encoded(job *drover.Job) ([]byte, error) {
	s.mu.Lock()
	data := s.known[job]
	s.mu.Unlock()
	if data != nil {
		return data, nil
	}
	data, err := wire.Msgpack{}.Marshal(job)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= jobsKnown || s.known == nil {
		s.known = map[*drover.Job][]byte{}
	}
	s.known[job] = data
	return data, nil
}

// answer names an answer of that history and state. When another history was seen meanwhile, the state was replaced: the names of
// answers before count no more.
func (s *answers) answer(history any, state uint64) string {
	if history == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name == "" || s.history != history {
		s.history, s.name = history, id.Random{}.New()
	}
	return s.name + "/" + strconv.FormatUint(state, 10)
}

// behind returns the state of the answer of that name. It is known if it is one of this history, and not of a later state than the other.
func behind(name, newest string) (state uint64, known bool) {
	history, at, _ := strings.Cut(name, "/")
	same, now, _ := strings.Cut(newest, "/")
	state, err := strconv.ParseUint(at, 10, 64)
	until, bad := strconv.ParseUint(now, 10, 64)
	return state, err == nil && bad == nil && history == same && state <= until
}

// reply makes an assignment ready to be sent, with the jobs apart from the allocations if the node understands that, and without
// the allocations that the node has.
func (s *answers) reply(a exchange.Assignment, asked *nodeRequest) (*pullReply, error) {
	r := &pullReply{
		Index: a.Index, State: a.State, Age: a.Age, Allocs: a.Allocs, Meta: a.Meta, Volumes: a.Volumes, SignedBy: a.SignedBy,
		Signers: a.Signers,
	}
	if !asked.Apart {
		return r, nil
	}
	allocs := a.Allocs
	r.Answer = s.answer(a.History, a.State)
	if state, known := behind(asked.Answer, r.Answer); known {
		allocs, r.Same = newer(allocs, state)
	}
	r.Allocs, r.JobOf = make([]*drover.Allocation, len(allocs)), make([]int, len(allocs))
	slim, places := make([]drover.Allocation, len(allocs)), map[*drover.Job]int{}
	for i, x := range allocs {
		slim[i], r.Allocs[i], r.JobOf[i] = *x, &slim[i], -1
		slim[i].Job, slim[i].Metrics = nil, nil // a node does not ask why it was chosen
		if x.Job == nil {
			continue
		}
		place, known := places[x.Job]
		if !known {
			data, err := s.encoded(x.Job)
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

// newer returns those that changed behind the index, and the ids of the others. What control lost sight of is told until the node says
// something about it.
func newer(allocs []*drover.Allocation, index uint64) (changed []*drover.Allocation, same []string) {
	for _, x := range allocs {
		if x.ModifyIndex > index || x.ClientStatus == drover.AllocClientUnknown {
			changed = append(changed, x)
		} else {
			same = append(same, x.ID)
		}
	}
	return changed, same
}

// assignment puts a reply together again. Allocations of the same job share it. Errors: Invalid if it does not fit together.
func (r *pullReply) assignment() (exchange.Assignment, error) {
	a := exchange.Assignment{
		Index: r.Index, State: r.State, Age: r.Age, Allocs: r.Allocs, Meta: r.Meta, Volumes: r.Volumes, SignedBy: r.SignedBy,
		Signers: r.Signers, Same: r.Same, Answer: r.Answer,
	}
	decoded := make([]*drover.Job, len(r.Jobs))
	for i, data := range r.Jobs {
		decoded[i] = new(drover.Job)
		if err := (wire.Msgpack{}).Unmarshal(data, decoded[i]); err != nil {
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
