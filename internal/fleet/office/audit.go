package office

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
)

// AuditLog keeps what the fleet and its operators did, with the reasons: the newest in memory, more in files.
type AuditLog struct {
	path  string // "" = memory only
	clock clock.Clock

	mu   sync.Mutex
	ring []fleet.Audit // guarded by mu; as are all below
	file *os.File
	size int64
}

const (
	auditKept = 4000     // entries in memory
	auditSize = 16 << 20 // bytes of a file; one older file is kept
)

// OpenAudit reads back what was kept in the folder, which it makes; "" keeps entries in memory only. Errors: the folder or a
// file can't be used.
func OpenAudit(dir string, c clock.Clock) (*AuditLog, error) {
	a := &AuditLog{clock: c}
	if dir == "" {
		return a, nil
	}
	if err := os.MkdirAll(dir, 0o711); err != nil { // loopback's machines may live below
		return nil, fmt.Errorf("making the fleet's folder: %w", err)
	}
	a.path = filepath.Join(dir, "audit.jsonl")
	for _, path := range []string{a.path + ".1", a.path} {
		if err := a.load(path); err != nil {
			return nil, fmt.Errorf("reading the fleet's audit log: %w", err)
		}
	}
	return a, a.reopen()
}

func (a *AuditLog) load(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e fleet.Audit
		if json.Unmarshal(lines.Bytes(), &e) == nil { // a torn line was not written whole
			a.remember(e)
		}
	}
	return nil
}

func (a *AuditLog) reopen() (err error) {
	a.file, err = os.OpenFile(a.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		var info fs.FileInfo
		if info, err = a.file.Stat(); err == nil {
			a.size = info.Size()
		}
	}
	return err
}

func (a *AuditLog) remember(e fleet.Audit) {
	if len(a.ring) >= 2*auditKept {
		a.ring = slices.Clone(a.ring[auditKept:])
	}
	a.ring = append(a.ring, e)
}

// Add appends an entry, at the time of now if it has none. It never fails: if the disk is full, the entry is in memory only.
func (a *AuditLog) Add(e fleet.Audit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.At.IsZero() {
		e.At = a.clock.Now()
	}
	e.At = e.At.UTC()
	a.remember(e)
	if a.file == nil {
		return
	}
	line, _ := json.Marshal(e) // plain values
	n, _ := a.file.Write(append(line, '\n'))
	if a.size += int64(n); a.size < auditSize {
		return
	}
	_ = a.file.Close()
	_ = os.Rename(a.path, a.path+".1")
	if a.reopen() != nil {
		a.file = nil
	}
}

// List returns the newest entries that match, the newest last.
func (a *AuditLog) List(match func(*fleet.Audit) bool, most int) []fleet.Audit {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []fleet.Audit{}
	for i := len(a.ring) - 1; i >= 0 && len(out) < most; i-- {
		if match(&a.ring[i]) {
			out = append(out, a.ring[i])
		}
	}
	slices.Reverse(out)
	return out
}

// Close closes the file.
func (a *AuditLog) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		_ = a.file.Close()
		a.file = nil
	}
}

// Audit returns the newest entries about a pool and an instance, the newest last; "" is any.
func (o *Office) Audit(_ context.Context, poolName, instance string, most int) ([]fleet.Audit, error) {
	return o.deps.Audit.List(func(e *fleet.Audit) bool {
		return (poolName == "" || e.Pool == poolName) && (instance == "" || e.Instance != "" && strings.HasPrefix(e.Instance, instance) ||
			slices.ContainsFunc(e.Several, func(i string) bool { return strings.HasPrefix(i, instance) }))
	}, most), nil
}
