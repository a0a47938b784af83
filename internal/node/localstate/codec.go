package localstate

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// version is the first byte of every value, so that a later agent can read an older one's state.
const version = 1

func handle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeFor[map[string]any]()
	return h
}

func (c Change) encode() ([]byte, error) {
	if c.value == nil {
		return nil, nil
	}
	var buf bytes.Buffer
	buf.WriteByte(version)
	if err := codec.NewEncoder(&buf, handle()).Encode(c.value); err != nil {
		return nil, fmt.Errorf("encoding %s for the local state: %w", c.key, err)
	}
	return buf.Bytes(), nil
}

func decode(data []byte, into any) error {
	if len(data) == 0 || data[0] != version {
		return fmt.Errorf("unknown version of a record")
	}
	return codec.NewDecoderBytes(data[1:], handle()).Decode(into)
}

// assemble joins allocations and their tasks. A task without its allocation is dropped: the allocation was forgotten.
func assemble(entries map[string][]byte) ([]Record, error) {
	records := map[string]*Record{}
	for key, data := range entries {
		if id, ok := strings.CutPrefix(key, "alloc/"); ok {
			r := &Record{Tasks: map[string]Task{}}
			if err := decode(data, &r.Alloc); err != nil {
				return nil, fmt.Errorf("decoding allocation %s of the local state: %w", id, err)
			}
			records[id] = r
		}
	}
	for key, data := range entries {
		rest, ok := strings.CutPrefix(key, "task/")
		if !ok {
			continue
		}
		allocID, name, _ := strings.Cut(rest, "/")
		r := records[allocID]
		if r == nil {
			continue
		}
		var t Task
		if err := decode(data, &t); err != nil {
			return nil, fmt.Errorf("decoding task %s of the local state: %w", rest, err)
		}
		r.Tasks[name] = t
	}
	out := make([]Record, 0, len(records))
	for _, r := range records {
		out = append(out, *r)
	}
	return out, nil
}
