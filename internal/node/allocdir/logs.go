package allocdir

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// FollowInterval is how soon a follower sees new bytes. Looking is one fstat while nothing changes.
const FollowInterval = 50 * time.Millisecond

// chunkSize is the most that one read returns, in bytes.
const chunkSize = 64 << 10

// Follow opens a stream over a task's rotated files, or over one file with r.Path. ended reports whether nothing more
// will be written; a follower of logs then stops at the end (nil = never). Errors: NotFound, Invalid, Forbidden.
func (d Dir) Follow(r exchange.LogRequest, c clock.Clock, ended func() bool) (exchange.LogReader, error) {
	if r.Offset < 0 {
		return nil, drover.Errorf(drover.Invalid, "offset: must not be negative")
	}
	if r.Origin != "" && r.Origin != "start" && r.Origin != "end" {
		return nil, drover.Errorf(drover.Invalid, "origin %q: must be start or end", r.Origin)
	}
	if r.Path != "" && (r.File != "" || r.Since != 0 || r.Search != "") {
		return nil, drover.Errorf(drover.Invalid, "path: only a task's log has rotated files and times, and is searched")
	}
	if len(r.Search) > exchange.LongestSearch {
		return nil, drover.Errorf(drover.Invalid, "search: has %d bytes, but at most %d are searched for", len(r.Search), exchange.LongestSearch)
	}
	f := &follower{dir: d, request: r, clock: c, ended: ended}
	if r.Path != "" {
		return f, f.startFile()
	}
	if r.Type != "stdout" && r.Type != "stderr" {
		return nil, drover.Errorf(drover.Invalid, "log type %q: must be stdout or stderr", r.Type)
	}
	if r.Task == "" || r.Task != filepath.Base(r.Task) {
		return nil, drover.Errorf(drover.Invalid, "task %q: is not a task's name", r.Task)
	}
	if err := f.startLogs(); err != nil || r.Search == "" {
		return f, err
	}
	return &searcher{from: f, text: newNeedle(r.Search)}, nil
}

// follower reads one file after the other.
type follower struct {
	dir     Dir
	request exchange.LogRequest
	clock   clock.Clock
	ended   func() bool

	file   *os.File
	name   string // relative to the folder
	number int    // of a rotated file; -1 before the first
	offset int64
}

// numbers lists the rotated files there are, in order.
func (f *follower) numbers() []int {
	entries, err := os.ReadDir(f.dir.Logs())
	if err != nil {
		return nil
	}
	prefix := f.request.Task + "." + f.request.Type + "."
	var out []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if n, err := strconv.Atoi(rest); err == nil && n >= 0 && strconv.Itoa(n) == rest {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// rotated is the path of the n-th rotated file, relative to the allocation's folder. The names are Nomad's.
func (f *follower) rotated(n int) string { return f.rotatedPrefix() + strconv.Itoa(n) }

func (f *follower) rotatedPrefix() string {
	return "alloc/logs/" + f.request.Task + "." + f.request.Type + "."
}

// startFile positions on one file.
func (f *follower) startFile() error {
	if err := f.openAt(f.request.Path, 0); err != nil {
		return err
	}
	return f.seek(f.request.Offset, f.request.Origin == "end")
}

// seek sets where reading begins: offset bytes from the start, or before the present end. An offset beyond the end is
// kept, and the reader waits for the file to grow to it.
func (f *follower) seek(offset int64, fromEnd bool) error {
	if fromEnd {
		info, err := f.file.Stat()
		if err != nil {
			return mapError(f.name, err)
		}
		offset = max(0, info.Size()-offset)
	}
	f.offset = offset
	return nil
}

// startLogs positions over all rotated files: the offset counts over all of them.
func (f *follower) startLogs() error {
	f.number = -1
	numbers := f.numbers()
	if len(numbers) == 0 {
		if f.request.Follow {
			return nil // the task has not written yet
		}
		return drover.Errorf(drover.NotFound, "no logs of task %q (%s)", f.request.Task, f.request.Type)
	}
	switch {
	case f.request.File != "":
		return f.startAt(numbers)
	case f.request.Since != 0:
		return f.startSince(numbers)
	}
	sizes := make([]int64, len(numbers))
	var total int64
	for i, n := range numbers {
		if info, err := os.Lstat(filepath.Join(f.dir.Path(), f.rotated(n))); err == nil {
			sizes[i] = info.Size()
			total += info.Size()
		}
	}
	at := f.request.Offset
	if f.request.Origin == "end" {
		at = max(0, total-at)
	}
	for i, n := range numbers {
		if at <= sizes[i] || i == len(numbers)-1 {
			if at == sizes[i] && i < len(numbers)-1 {
				at = 0
				continue
			}
			f.number = n
			return f.openAt(f.rotated(n), min(at, sizes[i]))
		}
		at -= sizes[i]
	}
	return nil
}

// openAt goes over to another file. If that cannot be opened, the present one stays open.
func (f *follower) openAt(name string, offset int64) error {
	file, err := f.dir.openRegular(name)
	if err != nil {
		return err
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.name, f.offset = file, strings.TrimLeft(name, "/"), offset
	return nil
}

// Next returns the next bytes or file event, io.EOF at the end without follow.
func (f *follower) Next(ctx context.Context) (exchange.LogChunk, error) {
	for {
		final := f.ended != nil && f.ended() // asked before reading, so that what was written before it is read
		chunk, err := f.read()
		if err != nil || len(chunk.Data) > 0 || chunk.Event != "" {
			return chunk, err
		}
		if f.advance() {
			continue
		}
		if !f.request.Follow || final {
			return exchange.LogChunk{}, io.EOF
		}
		if event := f.changed(); event != "" {
			return exchange.LogChunk{File: f.name, Offset: f.offset, Event: event}, nil
		}
		if !clock.Sleep(ctx, f.clock, FollowInterval) {
			return exchange.LogChunk{}, ctx.Err()
		}
	}
}

// read returns what is at the offset, empty at the end of the file. It never waits.
func (f *follower) read() (exchange.LogChunk, error) {
	if f.file == nil {
		return exchange.LogChunk{}, nil
	}
	buf := make([]byte, chunkSize)
	n, err := f.file.ReadAt(buf, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return exchange.LogChunk{}, mapError(f.name, err)
	}
	f.offset += int64(n)
	return exchange.LogChunk{File: f.name, Offset: f.offset, Data: buf[:n]}, nil
}

// advance goes to the next rotated file, if this one was read to its end and there is one.
func (f *follower) advance() bool {
	if f.request.Path != "" {
		return false
	}
	for _, n := range f.numbers() {
		if n > f.number {
			if f.file != nil && f.grown() {
				return true // written between our read and the rotation
			}
			if err := f.openAt(f.rotated(n), 0); err != nil {
				continue // pruned meanwhile
			}
			f.number = n
			return true
		}
	}
	return false
}

// grown reports whether the open file has bytes that were not read yet.
func (f *follower) grown() bool {
	info, err := f.file.Stat()
	return err == nil && info.Size() > f.offset
}

// changed reports that the file was deleted or truncated under us, and goes on from the start of what is there now.
func (f *follower) changed() string {
	if f.file == nil {
		return ""
	}
	info, err := f.file.Stat()
	if err != nil {
		return ""
	}
	if info.Size() < f.offset {
		f.offset = 0
		return "file truncated"
	}
	there, err := os.Lstat(filepath.Join(f.dir.Path(), f.name))
	if err == nil && os.SameFile(info, there) {
		return ""
	}
	_ = f.file.Close()
	f.file = nil
	if f.request.Path == "" {
		return ""
	}
	f.request.Follow = false
	return "file deleted"
}

// Close frees the file.
func (f *follower) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
