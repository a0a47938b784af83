package localstate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"sync"
)

// transient keeps what a restart of the machine ends anyway: warm and claimed runners, whose sandboxes do not outlive
// it, and which a node that does not remember them never starts again. It is a file that only grows until it is written
// anew, without fsync: what was written outlives the process. Under another boot id it is emptied, so a machine that
// stopped in the midst of a write leaves nothing that has to be trusted.
type transient struct {
	path string
	boot string

	mu        sync.Mutex // guards what follows
	file      *os.File
	size      int64
	live      int64 // bytes of it that count
	jobs      *jobs
	index     map[string]span           // by key
	queued    map[string]map[string]any // by allocation and key: what is to be encoded
	unwritten map[string][]byte         // of a write under way, or that failed
	allocs    map[string]bool           // that are kept here
}

// span is where a record is in the file.
type span struct{ at, size int64 }

// A record is its length and checksum (CRC-32C), both little-endian, then 1 for put or 0 for delete, the key's length as
// uvarint, key and value.
const (
	recordHead     = 8
	maxRecord      = 64 << 20
	transientLeast = 1 << 20 // no smaller file is written anew
	bootKey        = "boot"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openTransient opens or makes the file, and returns what is in it.
func openTransient(path, boot string) (*transient, map[string][]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the runners' local state: %w", err)
	}
	t := &transient{
		path: path, boot: boot, file: f, jobs: newJobs(newFormat()),
		index: map[string]span{}, queued: map[string]map[string]any{}, unwritten: map[string][]byte{}, allocs: map[string]bool{},
	}
	entries, err := t.read()
	if err == nil && string(entries[bootKey]) != boot {
		entries, err = map[string][]byte{}, t.empty()
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading the runners' local state %s: %w", path, err), f.Close())
	}
	delete(entries, bootKey)
	for key := range entries {
		if id, ok := strings.CutPrefix(key, allocPrefix); ok {
			t.allocs[id] = true
		}
	}
	return t, entries, nil
}

// read returns all records and cuts off what is torn: nobody was told that it is durable.
func (t *transient) read() (map[string][]byte, error) {
	entries := map[string][]byte{}
	r := bufio.NewReader(io.NewSectionReader(t.file, 0, 1<<62))
	for {
		key, value, size, err := readRecord(r)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
				return entries, t.file.Truncate(t.size)
			}
			return nil, err
		}
		if value == nil {
			delete(entries, key)
		} else {
			entries[key] = value
		}
		t.note(key, value != nil, span{t.size, size})
		t.size += size
	}
}

// empty begins the file anew, with the boot id only.
func (t *transient) empty() error {
	clear(t.index)
	t.size, t.live = 0, 0
	if err := t.file.Truncate(0); err != nil {
		return err
	}
	return t.write(map[string][]byte{bootKey: []byte(t.boot)})
}

// note takes a record that was written into the index.
func (t *transient) note(key string, put bool, s span) {
	t.live -= t.index[key].size
	if !put {
		delete(t.index, key)
		return
	}
	t.index[key] = s
	t.live += s.size
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

func (t *transient) writeLocked() error {
	if t.file == nil {
		return os.ErrClosed
	}
	if len(t.unwritten) == 0 {
		return nil
	}
	if err := t.write(t.unwritten); err != nil {
		return fmt.Errorf("writing the runners' local state: %w", err)
	}
	clear(t.unwritten)
	if t.size > transientLeast && t.size > 4*t.live {
		return t.compact()
	}
	return nil
}

// write appends the records. Errors: then nothing was appended.
func (t *transient) write(records map[string][]byte) error {
	type noted struct {
		key string
		put bool
		span
	}
	size := 0
	for key, value := range records {
		size += recordHead + 1 + binary.MaxVarintLen32 + len(key) + len(value)
	}
	all := make([]byte, 0, size)
	notes := make([]noted, 0, len(records))
	for key, value := range records {
		begin := len(all)
		all = appendRecord(all, key, value)
		notes = append(notes, noted{key, value != nil, span{t.size + int64(begin), int64(len(all) - begin)}})
	}
	if _, err := t.file.WriteAt(all, t.size); err != nil {
		_ = t.file.Truncate(t.size) // a torn record is also dropped when it is read
		return err
	}
	t.size += int64(len(all))
	for _, n := range notes {
		t.note(n.key, n.put, n.span)
	}
	return nil
}

// compact writes the file anew, with what counts. If that fails the old one stays.
func (t *transient) compact() error {
	next, err := os.OpenFile(t.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil //nolint:nilerr // everything is in the old file
	}
	all, index := make([]byte, 0, t.live), make(map[string]span, len(t.index))
	for key, s := range t.index {
		at := len(all)
		all = all[:at+int(s.size)]
		if _, err = t.file.ReadAt(all[at:], s.at); err != nil {
			break
		}
		index[key] = span{int64(at), s.size}
	}
	if err == nil {
		_, err = next.Write(all)
	}
	if err == nil {
		err = os.Rename(next.Name(), t.path)
	}
	if err != nil {
		_ = next.Close()
		return nil //nolint:nilerr // as above
	}
	_ = t.file.Close()
	t.file, t.index, t.size, t.live = next, index, int64(len(all)), int64(len(all))
	return nil
}

func (t *transient) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.flushLocked()
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	t.file = nil
	return err
}

var errTorn = errors.New("torn record")

func appendRecord(all []byte, key string, value []byte) []byte {
	begin := len(all)
	all = append(all, make([]byte, recordHead)...)
	if value == nil {
		all = append(all, 0)
	} else {
		all = append(all, 1)
	}
	all = binary.AppendUvarint(all, uint64(len(key)))
	all = append(append(all, key...), value...)
	body := all[begin+recordHead:]
	binary.LittleEndian.PutUint32(all[begin:], uint32(len(body)))
	binary.LittleEndian.PutUint32(all[begin+4:], crc32.Checksum(body, castagnoli))
	return all
}

// readRecord returns a nil value for a delete. Errors: io.EOF, errTorn.
func readRecord(r io.Reader) (key string, value []byte, size int64, err error) {
	var head [recordHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTorn
		}
		return "", nil, 0, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n < 2 || n > maxRecord {
		return "", nil, 0, errTorn
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errTorn
		}
		return "", nil, 0, err
	}
	length, used := binary.Uvarint(body[1:])
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[4:]) || used <= 0 || length > uint64(len(body)-1-used) {
		return "", nil, 0, errTorn
	}
	rest := body[1+used:]
	key, value = string(rest[:length]), rest[length:]
	if body[0] == 0 {
		value = nil
	}
	return key, value, recordHead + int64(n), nil
}
