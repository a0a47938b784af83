package localstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/appendlog"
)

// transient keeps what a restart of the machine ends anyway: warm and claimed runners, whose sandboxes do not outlive
// it, and which a node that does not remember them never starts again. It is a file that only grows until it is written
// anew, without fsync: what was written outlives the process. Under another boot id it is emptied, so a machine that
// stopped in the midst of a write leaves nothing that has to be trusted.
type transient struct {
	boot string

	mu        sync.Mutex // guards what follows
	file      *appendlog.File
	live      int64 // bytes of it that count
	jobs      *jobs
	index     map[string]appendlog.Span // by key
	queued    map[string]map[string]any // by allocation and key: what is to be encoded
	unwritten map[string][]byte         // of a write under way, or that failed
	allocs    map[string]bool           // that are kept here
}

// A record is a frame: 1 for put or 0 for delete, the key's length as uvarint, key and value.
const (
	transientLeast = 1 << 20 // no smaller file is written anew
	bootKey        = "boot"
)

// openTransient opens or makes the file, and returns what is in it.
func openTransient(path, boot string) (*transient, map[string][]byte, error) {
	f, err := appendlog.Open(path, appendlog.Frames)
	if err != nil {
		return nil, nil, fmt.Errorf("the runners' local state: %w", err)
	}
	t := &transient{
		boot: boot, file: f, jobs: newJobs(newFormat()),
		index: map[string]appendlog.Span{}, queued: map[string]map[string]any{}, unwritten: map[string][]byte{}, allocs: map[string]bool{},
	}
	entries, err := t.read()
	if err == nil && string(entries[bootKey]) != boot {
		entries, err = map[string][]byte{}, t.empty()
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the runners' local state: %w", err), f.Close())
	}
	delete(entries, bootKey)
	for key := range entries {
		if id, ok := strings.CutPrefix(key, allocPrefix); ok {
			t.allocs[id] = true
		}
	}
	return t, entries, nil
}

// read returns what the records say together.
func (t *transient) read() (map[string][]byte, error) {
	entries := map[string][]byte{}
	err := t.file.Read(func(data []byte, at appendlog.Span) {
		key, value, ok := decodeRecord(data)
		switch {
		case !ok: // none of ours
			return
		case value == nil:
			delete(entries, key)
		default:
			entries[key] = value
		}
		t.note(key, value != nil, at)
	})
	return entries, err
}

// empty begins the file anew, with the boot id only.
func (t *transient) empty() error {
	clear(t.index)
	t.live = 0
	if err := t.file.Replace(nil); err != nil {
		return err
	}
	return t.write(map[string][]byte{bootKey: []byte(t.boot)})
}

// note takes a record that was written into the index.
func (t *transient) note(key string, put bool, at appendlog.Span) {
	t.live -= t.index[key].Size
	if !put {
		delete(t.index, key)
		return
	}
	t.index[key] = at
	t.live += at.Size
}

// has reports whether the allocation is kept here.
func (t *transient) has(allocID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.allocs[allocID]
}

// queue takes changes, the newest of each key, to be encoded and written by add, flush or settle. It reports whether
// nothing was queued before.
func (t *transient) queue(changes []Change) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = len(t.queued) == 0
	t.queueLocked(changes)
	return first
}

// queueLocked keeps the newest value of each key by allocation, not encoded yet. mu is held.
func (t *transient) queueLocked(changes []Change) {
	for _, c := range changes {
		id := c.allocID()
		if t.queued[id] == nil {
			t.queued[id] = map[string]any{}
		}
		t.queued[id][c.key] = c.value
		if strings.HasPrefix(c.key, allocPrefix) {
			if c.value != nil {
				t.allocs[id] = true
			} else {
				delete(t.allocs, id)
			}
		}
	}
}

// add makes the changes, behind what was queued of their allocations. After an error they are tried again with the next.
func (t *transient) add(changes []Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queueLocked(changes)
	var errs []error
	for _, c := range changes {
		errs = append(errs, t.encodeLocked(c.allocID()))
	}
	return errors.Join(append(errs, t.writeLocked())...)
}

// settle writes what was queued of an allocation.
func (t *transient) settle(allocID string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.encodeLocked(allocID), t.writeLocked())
}

// flush writes everything that was queued, or could not be written.
func (t *transient) flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flushLocked()
}

// flushLocked is flush. mu is held.
func (t *transient) flushLocked() error {
	var errs []error
	for id := range t.queued {
		errs = append(errs, t.encodeLocked(id))
	}
	return errors.Join(append(errs, t.writeLocked())...)
}

// encodeLocked makes records of what was queued of an allocation. A record that was never written need not be deleted.
func (t *transient) encodeLocked(allocID string) error {
	var errs []error
	for key, value := range t.queued[allocID] {
		entries, err := t.jobs.entries(Change{key, value})
		errs = append(errs, err)
		for key, data := range entries {
			if _, written := t.index[key]; data == nil && !written {
				delete(t.unwritten, key)
			} else {
				t.unwritten[key] = data
			}
		}
	}
	delete(t.queued, allocID)
	return errors.Join(errs...)
}

// writeLocked appends the encoded records to the file, which is written anew once most of it is outdated. What cannot be
// written stays for the next time. mu is held.
func (t *transient) writeLocked() error {
	if len(t.unwritten) == 0 {
		return nil
	}
	if err := t.write(t.unwritten); err != nil {
		return fmt.Errorf("writing the runners' local state: %w", err)
	}
	clear(t.unwritten)
	if size := t.file.Size(); size > transientLeast && size > 4*t.live {
		t.compact()
	}
	return nil
}

// write appends the records. Errors: then nothing was appended.
func (t *transient) write(records map[string][]byte) error {
	type noted struct {
		key string
		put bool
		at  appendlog.Span
	}
	size := 0
	for key, value := range records {
		size += appendlog.FrameSize(1 + binary.MaxVarintLen32 + len(key) + len(value))
	}
	all := make([]byte, 0, size)
	notes := make([]noted, 0, len(records))
	for key, value := range records {
		begin := len(all)
		all = appendlog.AppendFrame(all, func(all []byte) []byte { return appendRecord(all, key, value) })
		at := appendlog.Span{At: t.file.Size() + int64(begin), Size: int64(len(all) - begin)}
		notes = append(notes, noted{key, value != nil, at})
	}
	if err := t.file.Append(all); err != nil {
		return err
	}
	for _, n := range notes {
		t.note(n.key, n.put, n.at)
	}
	return nil
}

// compact writes the file anew, with what counts. If that fails the old one stays: everything is in it.
func (t *transient) compact() {
	all, index := make([]byte, 0, t.live), make(map[string]appendlog.Span, len(t.index))
	for key, s := range t.index {
		at := len(all)
		all = all[:at+int(s.Size)]
		if t.file.ReadAt(all[at:], s.At) != nil {
			return
		}
		index[key] = appendlog.Span{At: int64(at), Size: s.Size}
	}
	if t.file.Replace(all) == nil {
		t.index, t.live = index, int64(len(all))
	}
}

// close writes what is left and closes the file.
func (t *transient) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.flushLocked(), t.file.Close())
}

// appendRecord appends a put of the value, or a delete if it is nil.
func appendRecord(all []byte, key string, value []byte) []byte {
	if value == nil {
		all = append(all, 0)
	} else {
		all = append(all, 1)
	}
	all = binary.AppendUvarint(all, uint64(len(key)))
	return append(append(all, key...), value...)
}

// decodeRecord returns a nil value for a delete; ok is false if the data are no record.
func decodeRecord(data []byte) (key string, value []byte, ok bool) {
	length, used := binary.Uvarint(data[1:])
	if used <= 0 || length > uint64(len(data)-1-used) {
		return "", nil, false
	}
	rest := data[1+used:]
	if data[0] == 0 {
		return string(rest[:length]), nil, true
	}
	return string(rest[:length]), rest[length:], true
}
