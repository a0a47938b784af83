package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

// process is a drover-init as the host sees it. A pid alone may be somebody else's by now: the start time tells.
type process struct {
	pid   int
	start string // in clock ticks since boot; "" = unknown
}

const pidFile = "pid"

// startTime reads when a process was started; "" if it has ended. It avoids os.File, as each launch calls it.
func startTime(pid int) string {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var b [1024]byte // it is one line
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return ""
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b[:n], ')')+1 : n]))
	const startField = 19 // after the name
	if len(f) <= startField {
		return ""
	}
	return f[startField]
}

// readProcess reads what write noted; the zero process, which is never alive, if there is nothing.
func readProcess(dir string) process {
	b, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return process{}
	}
	pid, start, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	n, _ := strconv.Atoi(pid)
	return process{n, start}
}

// write notes the process over the one before (see Shelf), in a line as long: to truncate a file makes ext4 write it out.
func (p process) write(dir string) error {
	f, err := open(filepath.Join(dir, pidFile), unix.O_WRONLY|unix.O_CREAT)
	if err != nil {
		return fmt.Errorf("noting the supervisor's process: %w", err)
	}
	const width = 40 // two numbers of 64 bits fit
	_, err = fmt.Fprintf(f, "%-*s\n", width, strconv.Itoa(p.pid)+" "+p.start)
	return errors.Join(err, f.Close())
}

// alive reports whether the process lives; another one with the same number is not taken for it.
func (p process) alive() bool { return p.pid > 0 && p.start != "" && startTime(p.pid) == p.start }

// open returns a descriptor of the process, -1 if it has ended.
func (p process) open() int {
	if p.pid <= 0 {
		return -1
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return -1
	}
	if !p.alive() {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// kill sends SIGKILL by a descriptor, so the number cannot be another's by then. An ended process is no error.
func (p process) kill() error {
	fd := p.open()
	if fd < 0 {
		return nil
	}
	defer unix.Close(fd)
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// wait returns when the process has ended.
func (p process) wait(ctx context.Context) error {
	fd := p.open()
	if fd < 0 {
		return nil
	}
	defer unix.Close(fd)
	const slice = 50 // ms between looks at ctx
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, slice)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

const killedIn = 5 * time.Second // the kernel needs milliseconds to take a killed process apart, on a busy machine more

// end kills the process and waits for its end: only then does it hold its control groups no more. ctx may have ended.
func (p process) end(ctx context.Context, clk clock.Clock) error {
	if err := p.kill(); err != nil {
		return fmt.Errorf("killing supervisor %d: %w", p.pid, err)
	}
	ctx, cancel := clk.WithTimeout(context.WithoutCancel(ctx), killedIn)
	defer cancel()
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("waiting for the killed supervisor %d: %w", p.pid, err)
	}
	return nil
}

// Bury waits for the end of a supervisor that does not listen any more, killing it if need be: its socket is closed before
// it has left its control groups. Without a supervisor there it returns at once.
func Bury(ctx context.Context, stateDir string, clk clock.Clock) error {
	return readProcess(stateDir).end(ctx, clk)
}

// Pid is drover-init's process id as the host sees it; 0 when it is not known.
func (c *Client) Pid() int { return c.process.pid }

// StartTicks is when drover-init was started, in the kernel's ticks; 0 when it is not known.
func (c *Client) StartTicks() uint64 {
	n, _ := strconv.ParseUint(c.process.start, 10, 64)
	return n
}

// Kill kills drover-init hard; what it ran as PID 1 of a namespace ends with it. Raw processes do not: Shutdown first.
func (c *Client) Kill() error { return c.process.kill() }

// openParent opens a path's folder, to use the path however long it is.
func openParent(path string) (*os.File, string, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	return os.NewFile(uintptr(fd), filepath.Dir(path)), filepath.Base(path), nil
}
