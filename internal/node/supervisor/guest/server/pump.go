package server

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// buffers are lent only while there is something to read or to send, so that idle executions cost none.
var buffers = sync.Pool{New: func() any { return new(frameBuffer) }} // a pool is stateless

// readReady reads into a buffer that it gets only when there is something to read. It returns nil at the end of the
// stream, and errDeadline when the file's read deadline passed.
func readReady(raw syscall.RawConn) (b *frameBuffer, n int, err error) {
	rerr := raw.Read(func(fd uintptr) bool {
		b = buffers.Get().(*frameBuffer)
		n, err = readFD(int(fd), b[:wire.DataSize])
		if errors.Is(err, syscall.EAGAIN) {
			buffers.Put(b)
			b = nil
			return false
		}
		return true
	})
	if rerr != nil {
		return nil, 0, rerr
	}
	if n <= 0 { // the end; EIO from a terminal without programs
		buffers.Put(b)
		return nil, 0, nil
	}
	return b, n, nil
}

func readFD(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// pump moves a stream's output from f to sink until its end. After f's read deadline it takes only what is already
// there.
func pump(f *os.File, sink func([]byte)) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	for grown := false; ; {
		b, n, err := readReady(raw)
		if err != nil {
			drain(raw, sink)
			return
		}
		if b == nil {
			return
		}
		if n == wire.DataSize && !grown {
			grown = true
			_ = raw.Control(widen)
		}
		sink(b[:n])
		buffers.Put(b)
	}
}

// busyPipe is the size of a pipe through which much goes: its two ends then wake each other less often. The kernel may
// refuse it to a user who has many.
const busyPipe = 256 << 10

func widen(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, busyPipe) }

func drain(raw syscall.RawConn, sink func([]byte)) {
	b := buffers.Get().(*frameBuffer)
	defer buffers.Put(b)
	_ = raw.Control(func(fd uintptr) {
		for {
			n, err := readFD(int(fd), b[:wire.DataSize])
			if n <= 0 || err != nil {
				return
			}
			sink(b[:n])
		}
	})
}

// floodBytes is how much a program may write beyond its limit, all of it thrown away, before it is taken for one that
// never ends.
const floodBytes = 64 << 20

// put takes output of the program. It blocks while a reader is behind, but not for what is beyond the limit.
func (x *command) put(i int, p []byte) {
	if x.keep(i, p) {
		x.kill(execution.CauseOutputLimit)
	}
}

// keep reports whether the program now has written far too much.
func (x *command) keep(i int, p []byte) (flood bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	st := &x.out[i]
	before := st.total
	st.total += int64(len(p))
	if limit := x.spec.Limits.OutputBytes; limit > 0 && st.total > limit {
		st.truncated = true
		p = p[:max(0, min(int64(len(p)), limit-before))]
		flood = before <= limit+floodBytes && st.total > limit+floodBytes
	}
	for len(p) > 0 {
		n := min(len(p), st.room(x.keepFrom(i)))
		if n <= 0 {
			x.cond.Wait()
			continue
		}
		st.put(p[:n])
		p = p[n:]
		x.cond.Broadcast()
	}
	return flood
}
