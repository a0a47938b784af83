package logs

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/logtimes"
)

// File is the log of one stream: numbered files of a directory that others may write to. So names are resolved relative
// to the open directory, and links are not followed.
type File struct {
	// Tell hears when output begins to be lost (goesOn), and when the log is written again; nil: nobody does.
	Tell func(text string, goesOn bool)
	// Now is the time, for the marks that say when output was written; nil: there are none.
	Now func() time.Time

	dir      int
	prefix   string // "<task>.stdout."
	maxFiles int
	maxSize  int64

	fd    int // -1: none open
	n     int // of the open file
	size  int64
	first int // the oldest that may still be there

	lineEnd bool // the last byte was a newline

	wrote    time.Time // last, by this File
	marked   time.Time // the last mark; none in this file: zero
	markedAt int64     // its offset

	lost int64 // bytes that the disk did not take since it last took any
	why  error // it did not
}

const (
	defaultLogFiles = 10
	defaultLogSize  = 10 << 20
	lineGrace       = 32 << 10 // how much a file may grow over its size to end with a whole line
)

// Open continues with the newest file that is there.
func Open(dir int, prefix string, maxFiles int, maxSize int64) (*File, error) {
	if maxFiles <= 0 {
		maxFiles = defaultLogFiles
	}
	if maxSize <= 0 {
		maxSize = defaultLogSize
	}
	l := &File{dir: dir, prefix: prefix, maxFiles: maxFiles, maxSize: maxSize, fd: -1, first: -1}
	for _, n := range l.numbers() {
		l.n = max(l.n, n)
		if l.first < 0 || n < l.first {
			l.first = n
		}
	}
	l.first = max(l.first, 0)
	return l, l.open()
}

// numbers lists the numbers of the files that are there, in no order. It opens the folder anew, as a descriptor's position is shared.
func (l *File) numbers() (list []int) {
	fd, err := unix.Openat(l.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(fd), "logs")
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, l.prefix); ok {
			if n, err := strconv.Atoi(rest); err == nil && n >= 0 {
				list = append(list, n)
			}
		}
	}
	return list
}

func (l *File) name(n int) string { return l.prefix + strconv.Itoa(n) }

// open opens the file with the number n, or makes it. It refuses what somebody who may write to the folder could have planted.
func (l *File) open() error {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Openat(l.dir, l.name(l.n), flags, 0o644)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 {
		_ = unix.Close(fd)
		return syscall.EINVAL // planted: a pipe, or a hard link to something else
	}
	l.fd, l.size = fd, st.Size
	if l.wrote.IsZero() && l.size > 0 { // by a supervisor before this one; the time of a file may be a little behind
		l.wrote = time.Unix(st.Mtim.Unix()).Add(logtimes.Grain)
	}
	return nil
}

// Write appends output, and rotates at line ends. What the disk does not take is lost, and marked as soon as it takes
// something again; the program is not blocked.
func (l *File) Write(p []byte) {
	for len(p) > 0 {
		// The file is full. It may grow a little over its size to end with a whole line.
		if l.size >= l.maxSize && (l.lineEnd || l.size >= l.maxSize+lineGrace) {
			l.rotate()
		}
		part := p
		if l.size+int64(len(p)) > l.maxSize {
			part = p[:l.cut(p)]
		}
		l.append(part)
		p = p[len(part):]
		l.lineEnd = part[len(part)-1] == '\n'
		if len(p) > 0 {
			l.rotate()
		}
	}
}

// cut says how much of p still belongs into the open file.
func (l *File) cut(p []byte) int {
	space := int(max(0, min(l.maxSize-l.size, int64(len(p)))))
	if i := bytes.LastIndexByte(p[:space], '\n'); i >= 0 {
		return i + 1
	}
	end := int(max(1, min(int64(len(p)), l.maxSize+lineGrace-l.size)))
	if i := bytes.IndexByte(p[min(space, end):end], '\n'); i >= 0 {
		return space + i + 1
	}
	return end // one endless line
}

// append writes to the open file, or tries to open one after a failure. What cannot be written is counted as lost.
func (l *File) append(p []byte) {
	if l.fd < 0 {
		if err := l.open(); err != nil {
			l.lose(len(p), err)
			return
		}
	}
	if l.lost > 0 && !l.mark() {
		l.lost += int64(len(p))
		return
	}
	l.note()
	if n, err := l.put(p); err != nil {
		l.lose(len(p)-n, err)
	}
}

// put returns how much the disk took.
func (l *File) put(p []byte) (n int, err error) {
	for n < len(p) {
		k, err := unix.Write(l.fd, p[n:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return n, err
		}
		n += k
		l.size += int64(k)
	}
	return n, nil
}

// lose counts lost bytes; only the first loss of a row is told.
func (l *File) lose(n int, err error) {
	first := l.lost == 0
	l.lost, l.why = l.lost+int64(n), err
	if first && l.Tell != nil {
		l.Tell("output is not written to the log, and is lost: "+err.Error(), true)
	}
}

// mark writes where output is missing, and reports whether that could be.
func (l *File) mark() bool {
	text := strconv.FormatInt(l.lost, 10) + " bytes of output were lost: " + l.why.Error()
	if _, err := l.put([]byte("\n[drover: " + text + "]\n")); err != nil {
		return false
	}
	l.lost = 0
	if l.Tell != nil {
		l.Tell("the log is written again; "+text, false)
	}
	return true
}

// rotate goes on with the next number and removes the files that are too old. If none can be opened, append tries again.
func (l *File) rotate() {
	l.Close()
	l.n++
	for ; l.first <= l.n-l.maxFiles; l.first++ {
		_ = unix.Unlinkat(l.dir, l.name(l.first), 0)
		_ = unix.Unlinkat(l.dir, logtimes.Name(l.name(l.first)), 0)
	}
	l.size, l.marked = 0, time.Time{}
	for range 3 { // a planted name is stepped over
		if l.open() == nil {
			return
		}
		l.n++
	}
}

// Close closes the open file. A later Write opens it again.
func (l *File) Close() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
		l.fd = -1
	}
}
