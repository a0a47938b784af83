package logs

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/logtimes"
)

// note marks when what is written next is written, if it is time to. What hinders it is no fault of the log: there is no mark then.
func (l *File) note() {
	if l.Now == nil {
		return
	}
	now := l.Now()
	silence := time.Duration(0)
	if !l.wrote.IsZero() {
		silence = now.Sub(l.wrote)
	}
	l.wrote = now
	since := now.Sub(l.marked) // of a clock that was set back it is negative
	if !l.marked.IsZero() && since >= 0 && since < logtimes.Every && l.size-l.markedAt < logtimes.Often {
		return
	}
	l.marked, l.markedAt = now, l.size
	l.addMark(logtimes.Mark{At: now, Silence: silence, Offset: l.size})
}

// addMark appends to the marks of the open file, unless somebody put another thing in their place.
func (l *File) addMark(m logtimes.Mark) {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Openat(l.dir, logtimes.Name(l.name(l.n)), flags, 0o644)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 {
		return
	}
	whole := st.Size - st.Size%logtimes.Size
	if !logtimes.Room(int(whole/logtimes.Size), l.size) {
		return
	}
	if whole != st.Size && unix.Ftruncate(fd, whole) != nil { // the disk was full
		return
	}
	var mark [logtimes.Size]byte
	_, _ = unix.Write(fd, logtimes.Append(mark[:0], m))
}
