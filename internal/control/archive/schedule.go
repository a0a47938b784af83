package archive

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/telemetry"
)

// Schedule saves archives into a folder, again and again, while this server leads.
type Schedule struct {
	archives *Archives
	every    time.Duration
	files    rotation.Series

	mu    sync.Mutex // guards what follows
	saved time.Time  // when the newest archive of this server was
	size  int64
	error string // of the last try; "" = it went well
	fails int
}

// prefix and suffix are around the time in the names of scheduled archives.
const (
	prefix = "drover-"
	suffix = ".snap"
	stamp  = "20060102T150405Z"
)

// retryWithin is how soon a save that failed is tried again, at the latest.
const retryWithin = time.Minute

// NewSchedule returns a schedule that does nothing before Run.
func NewSchedule(a *Archives, folder string, every time.Duration, keep int) *Schedule {
	return &Schedule{archives: a, every: every, files: rotation.Series{Folder: folder, Prefix: prefix, Suffix: suffix, Keep: keep}}
}

// Run saves until ctx, of a term of office, ends. What was saved before it counts.
func (s *Schedule) Run(ctx context.Context) {
	d := s.archives.deps
	next := s.newest().Add(s.every)
	for {
		if wait := next.Sub(d.Clock.Now()); wait > 0 && !clock.Sleep(ctx, d.Clock, wait) || ctx.Err() != nil {
			return
		}
		now := d.Clock.Now()
		m, path, err := s.save(ctx, now)
		s.note(now, m, err)
		if err != nil {
			d.Logger.Error("a scheduled archive was not saved; older ones stay", "folder", s.files.Folder, "error", err)
			next = now.Add(min(s.every, retryWithin))
			continue
		}
		d.Logger.Info("saved the state", "file", path, "index", m.Index)
		next = now.Add(s.every)
	}
}

func (s *Schedule) save(ctx context.Context, now time.Time) (m cluster.Archive, path string, err error) {
	path, err = s.files.Add(now.UTC().Format(stamp), func(w io.Writer) (err error) {
		m, err = s.archives.Write(ctx, w, false)
		return err
	})
	return m, path, diskError(err)
}

// newest is when the newest archive in the folder was saved; the zero time if there is none.
func (s *Schedule) newest() time.Time {
	names, err := s.files.List()
	if err != nil || len(names) == 0 {
		return time.Time{} // the next save says what is wrong with the folder
	}
	name := names[len(names)-1]
	at, err := time.Parse(stamp, strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix))
	if err != nil || at.After(s.archives.deps.Clock.Now()) {
		return time.Time{}
	}
	return at
}

// note keeps how the last try went.
func (s *Schedule) note(now time.Time, m cluster.Archive, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.error = err.Error()
		s.fails++
		return
	}
	s.saved, s.size, s.error = now, m.Size, ""
}

// Problem says why the last archive was not saved; "" if it was.
func (s *Schedule) Problem() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.error
}

// Gauges tells how old the newest archive of this server is, how large its state, and how many were not saved. It tells nothing of
// a server that never saved one.
func (s *Schedule) Gauges(emit telemetry.Emit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saved.IsZero() {
		emit("drover.archives.age_seconds", s.archives.deps.Clock.Now().Sub(s.saved).Seconds())
		emit("drover.archives.size_bytes", float64(s.size))
	}
	if !s.saved.IsZero() || s.fails > 0 {
		emit("drover.archives.failures", float64(s.fails))
	}
}
