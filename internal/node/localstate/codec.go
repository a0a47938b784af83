package localstate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/drover-project/drover"
)

// The first byte of every value, so that a later agent can read an older one's state.
const (
	version     = 1
	splitRecord = 2 // an allocation apart from its job
)

// format turns records into bytes. One is kept for a store's life: it remembers what it learned of the types. Its owner
// locks it to encode.
type format struct {
	handle  *codec.MsgpackHandle
	encoder *codec.Encoder
	scratch []byte // of the encoder
}

// newFormat returns a format. Texts are decoded as strings, and values of no known type as maps with text keys, as JSON
// would be.
func newFormat() *format {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeFor[map[string]any]()
	return &format{handle: h, encoder: codec.NewEncoderBytes(nil, h), scratch: make([]byte, 0, 4<<10)}
}

// encode returns a value with its version byte in a buffer of its own, nil for a deletion.
func (f *format) encode(c Change) ([]byte, error) {
	if c.value == nil {
		return nil, nil
	}
	f.encoder.ResetBytes(&f.scratch)
	if err := f.encoder.Encode(c.value); err != nil {
		return nil, fmt.Errorf("encoding %s for the local state: %w", c.key, err)
	}
	out := make([]byte, 1+len(f.scratch))
	out[0] = version
	if _, split := c.value.(stored); split {
		out[0] = splitRecord
	}
	copy(out[1:], f.scratch)
	return out, nil
}

// decode reads a value that encode made. A record of a version that is newer than this agent is an error, and no data is
// lost: the agent does not start on it.
func (f *format) decode(data []byte, into any) error {
	_, split := into.(*stored)
	if len(data) == 0 || data[0] != version && !split || split && data[0] != splitRecord {
		return errors.New("unknown version of a record")
	}
	return codec.NewDecoderBytes(data[1:], f.handle).Decode(into)
}

// assemble joins allocations and their tasks. A task without its allocation is dropped: the allocation was forgotten.
// jobOf tells the job's key of those that have it apart.
func (f *format) assemble(entries map[string][]byte) (out []Record, jobOf map[string]string, err error) {
	records, jobOf, err := f.allocs(entries)
	if err != nil {
		return nil, nil, err
	}
	for key, data := range entries {
		kind, rest, _ := strings.Cut(key, "/")
		allocID, task, _ := strings.Cut(rest, "/")
		r := records[allocID]
		if r == nil || kind == "alloc" || kind == "job" {
			continue
		}
		var err error
		var t Task
		if kind == "status" {
			err = f.decode(data, &r.Status)
		} else if err = f.decode(data, &t); err == nil {
			r.Tasks[task] = t
		}
		if err != nil {
			return nil, nil, fmt.Errorf("decoding %s of the local state: %w", key, err)
		}
	}
	for _, r := range records {
		out = append(out, *r)
	}
	return out, jobOf, nil
}

// allocs decodes the allocations; those of one job share it, as they do in an answer of control.
func (f *format) allocs(entries map[string][]byte) (records map[string]*Record, jobOf map[string]string, err error) {
	records, jobOf = map[string]*Record{}, map[string]string{}
	decoded := map[string]*drover.Job{}
	for key, data := range entries {
		id, ok := strings.CutPrefix(key, allocPrefix)
		if !ok {
			continue
		}
		r := &Record{Tasks: map[string]Task{}}
		if len(data) > 0 && data[0] == version {
			err = f.decode(data, &r.Alloc)
		} else {
			var s stored
			if err = f.decode(data, &s); err == nil && s.Job != "" {
				jobOf[id] = s.Job
				s.Alloc.Job, err = f.job(entries, decoded, s.Job)
			}
			r.Alloc = s.Alloc
		}
		if err != nil {
			return nil, nil, fmt.Errorf("decoding %s of the local state: %w", key, err)
		}
		records[id] = r
	}
	return records, jobOf, nil
}

// job decodes a job once, however many allocations share it. A missing one is an error, as its allocation cannot run.
func (f *format) job(entries map[string][]byte, decoded map[string]*drover.Job, key string) (*drover.Job, error) {
	if j := decoded[key]; j != nil {
		return j, nil
	}
	var j *drover.Job
	if err := f.decode(entries[key], &j); err != nil {
		return nil, fmt.Errorf("its job %s: %w", key, err)
	}
	decoded[key] = j
	return j, nil
}
