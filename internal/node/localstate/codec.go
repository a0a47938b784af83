package localstate

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// version is the first byte of every value, so that a later agent can read an older one's state.
const version = 1

// format turns records into bytes. One is kept for a store's life: it remembers what it learned of the types.
type format struct{ handle *codec.MsgpackHandle }

func newFormat() format {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeFor[map[string]any]()
	return format{h}
}

func (f format) encode(c Change) ([]byte, error) {
	if c.value == nil {
		return nil, nil
	}
	var buf bytes.Buffer
	buf.WriteByte(version)
	if err := codec.NewEncoder(&buf, f.handle).Encode(c.value); err != nil {
		return nil, fmt.Errorf("encoding %s for the local state: %w", c.key, err)
	}
	return buf.Bytes(), nil
}

func (f format) decode(data []byte, into any) error {
	if len(data) == 0 || data[0] != version {
		return errors.New("unknown version of a record")
	}
	return codec.NewDecoderBytes(data[1:], f.handle).Decode(into)
}

// assemble joins allocations and their tasks. A task without its allocation is dropped: the allocation was forgotten.
func (f format) assemble(entries map[string][]byte) ([]Record, error) {
	records := map[string]*Record{}
	for key, data := range entries {
		if id, ok := strings.CutPrefix(key, "alloc/"); ok {
			r := &Record{Tasks: map[string]Task{}}
			if err := f.decode(data, &r.Alloc); err != nil {
				return nil, fmt.Errorf("decoding %s of the local state: %w", key, err)
			}
			records[id] = r
		}
	}
	for key, data := range entries {
		kind, rest, _ := strings.Cut(key, "/")
		allocID, task, _ := strings.Cut(rest, "/")
		r := records[allocID]
		if r == nil || kind == "alloc" {
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
			return nil, fmt.Errorf("decoding %s of the local state: %w", key, err)
		}
	}
	out := make([]Record, 0, len(records))
	for _, r := range records {
		out = append(out, *r)
	}
	return out, nil
}
