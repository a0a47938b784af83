package localstate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/drover-project/drover"
)

// jobs keeps each job once, however many allocations it has here: in an allocation it would be most of the record. A job's
// key is a hash of its content, and its record goes with the last allocation. Its owner locks it.
type jobs struct {
	format *format
	byPtr  map[*drover.Job]string // jobs are not changed once they are shared: the same one needs no second encoding
	of     map[string]string      // job key by allocation
	users  map[string]int         // allocations by job key
}

const (
	jobPrefix   = "job/"
	allocPrefix = "alloc/"
	maxPointers = 256 // more than jobs that start at once
)

func newJobs(f *format) *jobs {
	return &jobs{format: f, byPtr: map[*drover.Job]string{}, of: map[string]string{}, users: map[string]int{}}
}

// stored is an allocation's record: itself without the job, and where that is.
type stored struct {
	Job   string
	Alloc *drover.Allocation
}

// entries are what a change means to the file: nil values delete.
func (j *jobs) entries(c Change) (map[string][]byte, error) {
	id, isAlloc := strings.CutPrefix(c.key, allocPrefix)
	if !isAlloc {
		data, err := j.format.encode(c)
		return map[string][]byte{c.key: data}, err
	}
	out := map[string][]byte{}
	alloc, put := c.value.(*drover.Allocation)
	record := stored{Alloc: alloc}
	if put && alloc.Job != nil {
		key, data, err := j.key(alloc.Job)
		if err != nil {
			return nil, err
		}
		if j.of[id] != key && j.users[key] == 0 {
			if data == nil { // it was known by its pointer, and its record went
				if data, err = j.format.encode(Change{key: key, value: alloc.Job}); err != nil {
					return nil, err
				}
			}
			out[key] = data
		}
		without := *alloc
		without.Job = nil
		record = stored{Job: key, Alloc: &without}
	}
	if gone := j.assign(id, record.Job); gone != "" {
		out[gone] = nil
	}
	if !put {
		out[c.key] = nil
		return out, nil
	}
	data, err := j.format.encode(Change{key: c.key, value: record})
	out[c.key] = data
	return out, err
}

// assemble is format's, and takes note of who has which job.
func (j *jobs) assemble(entries map[string][]byte) ([]Record, error) {
	records, jobOf, err := j.format.assemble(entries)
	for id, key := range jobOf {
		j.assign(id, key)
	}
	return records, err
}

// key returns a job's key, and its encoding if that was made now.
func (j *jobs) key(job *drover.Job) (string, []byte, error) {
	if key := j.byPtr[job]; key != "" {
		return key, nil, nil
	}
	data, err := j.format.encode(Change{key: jobPrefix, value: job})
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(data)
	key := jobPrefix + hex.EncodeToString(sum[:16])
	if len(j.byPtr) >= maxPointers {
		clear(j.byPtr)
	}
	j.byPtr[job] = key
	return key, data, nil
}

// assign notes the job of an allocation ("" = the allocation is gone) and returns the key of one that nobody has any more.
func (j *jobs) assign(allocID, key string) (unused string) {
	old := j.of[allocID]
	if old == key {
		return ""
	}
	if key == "" {
		delete(j.of, allocID)
	} else {
		j.of[allocID] = key
		j.users[key]++
	}
	if old == "" {
		return ""
	}
	if j.users[old]--; j.users[old] > 0 {
		return ""
	}
	delete(j.users, old)
	return old
}
