package program

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/guest/buffer"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// readReady reads into a buffer that it gets only when there is something to read. It returns nil at the end of the
// stream, and errDeadline when the file's read deadline passed.
func readReady(raw syscall.RawConn) (b *buffer.Frame, n int, err error) {
	rerr := raw.Read(func(fd uintptr) bool {
		b = buffer.Get()
		n, err = readFD(int(fd), b[:wire.DataSize])
		if errors.Is(err, syscall.EAGAIN) {
			buffer.Put(b)
			b = nil
			return false
		}
		return true
	})
	if rerr != nil {
		return nil, 0, rerr
	}
	if n <= 0 { // the end; EIO from a terminal without programs
		buffer.Put(b)
		return nil, 0, nil
	}
	return b, n, nil
}

// readFD is read(2), again after an interruption.
func readFD(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, b)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// Pump moves a stream's output from f to sink until its end. After f's read deadline it takes only what is already
// there.
func Pump(f *os.File, sink func([]byte)) {
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
		buffer.Put(b)
	}
}

// busyPipe is the size of a pipe through which much goes: its two ends then wake each other less often. The kernel may
// refuse it to a user who has many.
const busyPipe = 256 << 10

// widen asks for a larger pipe; a refusal changes nothing but the speed. Of a terminal it is always refused.
func widen(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, busyPipe) }

// drain takes what is in the pipe without waiting for more.
func drain(raw syscall.RawConn, sink func([]byte)) {
	b := buffer.Get()
	defer buffer.Put(b)
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
