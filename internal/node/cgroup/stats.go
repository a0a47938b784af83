package cgroup

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// openStats are a group's statistics files. Opening one costs four times what reading it does, so that they stay open
// once they were read twice, while there is room for that.
type openStats struct {
	room *atomic.Int64 // nil: none is kept

	mu    sync.Mutex
	uses  int                 // guarded by mu
	quota bool                // v1: there was a quota of CPU time when that was last looked at; guarded by mu
	files map[string]*os.File // by name, which says the controller too; guarded by mu
}

// roomForStats is half of the descriptors that this process may have.
func roomForStats() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	const share, most = 2, 1 << 20
	return int64(min(l.Cur, most)) / share
}

// reader locks the files until its done.
func (s *openStats) reader() *statReader {
	s.mu.Lock()
	s.uses++
	buf, ok := buffers.Get().(*[]byte)
	if !ok {
		buf = new(make([]byte, readSize))
	}
	return &statReader{open: s, buf: buf}
}

// close closes the files that are kept. The next reader opens them again.
func (s *openStats) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

// closeLocked gives the descriptors back to the room that all groups share. mu is held.
func (s *openStats) closeLocked() {
	for _, f := range s.files {
		_ = f.Close() // it was only read
		s.room.Add(1)
	}
	s.files, s.uses = nil, 0
}

// buffers holds the buffers into which files are read. Without it, sampling many groups each second would make much
// garbage.
var buffers sync.Pool // a pool

// statReader reads a group's statistics. What is not there is nothing.
type statReader struct {
	open  *openStats
	buf   *[]byte
	found bool // some file was there
}

// done ends the reading and unlocks. When nothing was found the group was removed, so its files are closed.
func (r *statReader) done() {
	buffers.Put(r.buf)
	if !r.found {
		r.open.closeLocked()
	}
	r.open.mu.Unlock()
}

// read reads a file at once: the kernel gives a statistic whole if there is room.
func (r *statReader) read(dir, file string) []byte {
	if dir == "" {
		return nil
	}
	f := r.open.files[file]
	if f == nil {
		fd, err := openRaw(dir+"/"+file, unix.O_RDONLY)
		if err != nil {
			return nil
		}
		f = os.NewFile(uintptr(fd), file)
		if !r.open.keep(file, f) {
			defer f.Close()
		}
	}
	n, err := unix.Pread(int(f.Fd()), *r.buf, 0) // ReadAt would have it made twice, to see that there is no more
	if err != nil {                              // removed meanwhile
		return nil
	}
	r.found = true
	return (*r.buf)[:n]
}

// lookEvery is the number of samples after which it is checked again whether the group has a quota of CPU time.
const lookEvery = 60

// limited reports whether the v1 group has a quota, without which nothing is ever throttled: that saves a file of six.
func (r *statReader) limited(dir string) bool {
	if dir != "" && r.open.uses%lookEvery == 1 {
		text, err := readFile(dir, "cpu.cfs_quota_us")
		r.open.quota = err != nil || number(text) > 0 // -1: none
	}
	return r.open.quota
}

// keep reports whether the file stays open. Caller holds mu.
func (s *openStats) keep(name string, f *os.File) bool {
	if s.room == nil || s.uses < 2 {
		return false
	}
	if s.room.Add(-1) < 0 {
		s.room.Add(1)
		return false
	}
	if s.files == nil {
		s.files = map[string]*os.File{}
	}
	s.files[name] = f
	return true
}

// lines calls f with each "key number" of the file.
func (r *statReader) lines(dir, file string, f func(key []byte, v int64)) {
	for line := range bytes.Lines(r.read(dir, file)) {
		if key, value, ok := bytes.Cut(line, []byte{' '}); ok {
			f(key, number(value))
		}
	}
}

// number reads a file that is one number, 0 if it is missing.
func (r *statReader) number(dir, file string) int64 { return number(r.read(dir, file)) }

// number reads the digits that b begins with.
func number(b []byte) (n int64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// counter reads one number of a file of counters.
func counter(dir, file, name string) (n uint64) {
	text, err := readFile(dir, file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if key, value, ok := bytes.Cut(line, []byte{' '}); ok && string(key) == name {
			n = uint64(number(value)) // digits
		}
	}
	return n
}
