package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
)

// register is something that clients compare and set. Each value that is written is written once.
type register interface {
	// read returns the value and the index to compare with.
	read(server int, query url.Values) (value string, index uint64, err error)
	// set writes if the index is still the newest. done is false if it surely was not written.
	set(server int, index uint64, value string) (next uint64, done bool, err error)
}

// job is a register in the meta of a job that never runs.
type jobRegister struct {
	*world
	id string
}

func (j jobRegister) job(value string) *drover.Job {
	job := shellJob(j.id, drover.JobTypeBatch, 1, "true")
	job.ParameterizedJob = &drover.ParameterizedJobConfig{}
	job.Meta = map[string]string{"value": value}
	return job
}

func (j jobRegister) read(server int, query url.Values) (string, uint64, error) {
	var out drover.Job
	_, err := j.call(server, http.MethodGet, "/v1/job/"+j.id, query, nil, &out, patience)
	return out.Meta["value"], out.JobModifyIndex, err
}

func (j jobRegister) set(server int, index uint64, value string) (uint64, bool, error) {
	var out struct{ JobModifyIndex uint64 }
	body := map[string]any{"Job": j.job(value), "EnforceIndex": true, "JobModifyIndex": index}
	_, err := j.call(server, http.MethodPut, "/v1/jobs", nil, body, &out, patience)
	if err != nil && strings.Contains(err.Error(), "Enforcing job modify index") {
		return 0, false, nil
	}
	return out.JobModifyIndex, true, err
}

// settingRegister is the scheduler's configuration, in a number of it that is kept and has no effect.
type settingRegister struct{ *world }

const settingPath = "/v1/operator/scheduler/configuration"

func (s settingRegister) read(server int, query url.Values) (string, uint64, error) {
	var out struct {
		SchedulerConfig drover.SchedulerConfiguration
	}
	_, err := s.call(server, http.MethodGet, settingPath, query, nil, &out, patience)
	return fmt.Sprint(out.SchedulerConfig.NodeLimitForFeasibilityChecks), out.SchedulerConfig.ModifyIndex, err
}

func (s settingRegister) set(server int, index uint64, value string) (uint64, bool, error) {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return 0, false, err
	}
	var out struct {
		Updated bool
		Index   uint64
	}
	body := drover.SchedulerConfiguration{NodeLimitForFeasibilityChecks: uint(n)}
	_, err = s.call(server, http.MethodPut, settingPath, url.Values{"cas": {fmt.Sprint(index)}}, body, &out, patience)
	return out.Index, err != nil || out.Updated, err
}

// patience is how long a client waits for an answer.
const patience = 8 * time.Second

// outcome is what a client knows of what it did.
type outcome string

const (
	applied  outcome = "applied"
	refuted  outcome = "refuted" // the index was not the newest
	unknown  outcome = "unknown"
	observed outcome = "read"
)

// step is an operation on a register, as its client saw it.
type step struct {
	client        int
	outcome       outcome
	expect, value string // written if it was expect; or only value, which was read
	call, end     time.Duration
}

// history is all steps on one register.
type history struct {
	name string

	mu    sync.Mutex // guards what follows
	steps []step
}

func (h *history) add(s step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps = append(h.steps, s)
}

// consistent has a read see all that was acknowledged before.
var consistent = url.Values{"consistent": {"true"}}

// contend compares and sets the register through one server, until the run ends.
func (w *world) contend(r register, h *history, client int, chance *rand.Rand) {
	for n := 1; w.pause(time.Duration(50+chance.IntN(250)) * time.Millisecond); n++ {
		server := (client + chance.IntN(2)*chance.IntN(3)) % 3
		begun := w.now()
		value, index, err := r.read(server, consistent)
		if err != nil {
			continue
		}
		h.add(step{client: client, outcome: observed, value: value, call: begun, end: w.now()})
		next := fmt.Sprint(client*1_000_000 + n)
		for again := true; again; {
			s := step{client: client, expect: value, value: next, call: w.now()}
			made, done, err := r.set(server, index, next)
			s.end = w.now()
			switch {
			case err != nil:
				s.outcome = unknown
			case done:
				s.outcome = applied
			default:
				s.outcome = refuted
			}
			h.add(s)
			// Now and then it goes on from what it wrote, without a read between.
			if again = s.outcome == applied && chance.IntN(3) == 0; again {
				n++
				value, index, next = next, made, fmt.Sprint(client*1_000_000+n)
			}
		}
	}
}
