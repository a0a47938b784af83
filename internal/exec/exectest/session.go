package exectest

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Commands are separated by ';' or newlines, of a shell's "-c" or of argv joined by blanks:
//
//	echo X…  err X…  cat  upper (cat in capitals, line by line)  env NAME  spew N (bytes)  hex BYTES  sleep DURATION
//	exit N  oom  whoami  tick N (lines with a millisecond between)
type session struct {
	spec   execution.Spec
	ctx    context.Context // ends with the execution
	cancel context.CancelCauseFunc
	frames chan execution.Frame
	closed chan struct{}
	once   sync.Once

	inR *io.PipeReader
	inW *io.PipeWriter

	mu      sync.Mutex
	cut     chan struct{} // closed when the link broke
	receipt *execution.Receipt
	again   *execution.Receipt // for who attached after it was read; nil: no more
	offsets [3]int64
	Sizes   []execution.WindowSize
	over    bool
	all     []execution.Frame // its output
	dropped bool              // that is not kept any more
	untaken bool              // who read went before the end

	truncated bool // what was written when it was killed did not arrive
}

// The causes with which a session's context ends; run makes receipts of them.
var (
	errKilled = errors.New("killed")
	errBroken = errors.New("the node is gone")
	errOOM    = errors.New("oom")
	errWall   = errors.New("wall limit")
)

// exitError is the exit code with which a command ends the script; 127 is an unknown command, as in a shell.
type exitError int

func (e exitError) Error() string { return strconv.Itoa(int(e)) }

// signalError is the name of the signal that ended the script.
type signalError string

func (e signalError) Error() string { return string(e) }

// newSession starts the commands at once. The wall limit runs on the real clock: tests with limits keep them short, or
// run in a synctest bubble.
func newSession(spec execution.Spec) *session {
	if len(spec.Values) > 0 {
		spec.Env = maps.Clone(spec.Env)
	}
	for i, value := range spec.Values {
		if s := spec.Secrets[i]; s.Env != "" {
			spec.Env[s.Env] = value
		}
	}
	spec.Values = nil
	s := &session{spec: spec, frames: make(chan execution.Frame), closed: make(chan struct{}), cut: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.inR, s.inW = io.Pipe()
	if !spec.Stdin {
		_ = s.inW.Close() // cannot fail
	}
	context.AfterFunc(s.ctx, func() { _ = s.inR.CloseWithError(io.EOF) })
	if spec.Limits.Wall > 0 {
		time.AfterFunc(spec.Limits.Wall, func() { s.cancel(errWall) })
	}
	go s.run() // ends with ctx or the commands
	return s
}

// run plays the execution: the frame that says it started, the output, then the receipt. A node that broke sends no
// receipt: its session just ends. The commands "missing" and the user "nobody-here" cannot be started.
func (s *session) run() {
	defer close(s.frames)
	receipt := &execution.Receipt{ExecutionID: s.spec.ID, Cause: execution.CauseExited}
	if s.spec.Argv[0] == "missing" || s.spec.User == "nobody-here" {
		receipt.Cause, receipt.ExitCode, receipt.Error = execution.CauseStartFailed, 127, "no such command or user"
		s.deliver(execution.Frame{Receipt: receipt})
		return
	}
	select {
	case s.frames <- execution.Frame{Started: true, Pid: 42}:
	case <-s.closed: // by who never asked
	case <-s.ctx.Done():
	}
	err := s.script()
	if cause := context.Cause(s.ctx); cause != nil {
		err = cause
	}
	s.mu.Lock()
	s.over = true
	receipt.StdoutBytes, receipt.StderrBytes = s.offsets[execution.Stdout], s.offsets[execution.Stderr]
	receipt.Truncated = s.truncated
	s.mu.Unlock()
	var code exitError
	var sig signalError
	switch {
	case errors.Is(err, errBroken):
		return
	case errors.As(err, &code):
		receipt.ExitCode = int(code)
	case errors.As(err, &sig):
		receipt.ExitCode, receipt.Cause = 130, execution.CauseSignalled
	case errors.Is(err, errWall):
		receipt.ExitCode, receipt.Signal, receipt.Cause = 137, 9, execution.CauseTimeout
	case errors.Is(err, errOOM):
		receipt.ExitCode, receipt.Signal, receipt.Cause = 137, 9, execution.CauseOOM
	case errors.Is(err, errKilled):
		receipt.ExitCode, receipt.Signal, receipt.Cause = 137, 9, execution.CauseKilled
	}
	s.deliver(execution.Frame{Receipt: receipt})
	s.cancel(errKilled)
}

// deliver waits until somebody takes the frame, or until the session is closed. It ignores the context, because the
// receipt comes after its end.
func (s *session) deliver(f execution.Frame) {
	s.mu.Lock()
	s.receipt = f.Receipt
	s.mu.Unlock()
	select {
	case s.frames <- f:
	case <-s.closed:
	}
}

// script runs the commands one after the other, up to the first that fails.
func (s *session) script() error {
	text := strings.Join(s.spec.Argv, " ")
	if path.Base(s.spec.Argv[0]) == "sh" && len(s.spec.Argv) == 3 {
		text = s.spec.Argv[2]
	}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := s.command(word, rest); err != nil {
			return err
		}
	}
	return nil
}

// command runs one command. Malformed arguments count as 0: the scripts are the tests' own.
func (s *session) command(word, rest string) error {
	switch word {
	case "echo":
		return s.out(execution.Stdout, []byte(rest+"\n"))
	case "err":
		return s.out(execution.Stderr, []byte(rest+"\n"))
	case "env":
		if rest != "" {
			return s.out(execution.Stdout, []byte(s.spec.Env[rest]+"\n"))
		}
		for _, k := range slices.Sorted(maps.Keys(s.spec.Env)) {
			if err := s.out(execution.Stdout, []byte(k+"="+s.spec.Env[k]+"\n")); err != nil {
				return err
			}
		}
		return nil
	case "whoami":
		who := s.spec.User
		if s.spec.Privileged {
			who = "root"
		}
		return s.out(execution.Stdout, []byte(who+"\n"))
	case "cat", "upper":
		return s.cat(word == "upper")
	case "spew":
		n, _ := strconv.Atoi(rest)
		return s.spew(n)
	case "hex":
		data, _ := hex.DecodeString(rest)
		return s.out(execution.Stdout, data)
	case "sleep":
		d, _ := time.ParseDuration(rest)
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	case "oom":
		return errOOM
	case "exit":
		n, _ := strconv.Atoi(rest)
		return exitError(n)
	}
	return exitError(127)
}

// cat copies stdin to stdout until stdin ends. The end of the session closes the pipe too: its cause is then the
// error, otherwise there is none.
func (s *session) cat(upper bool) error {
	buf := make([]byte, 4096)
	for {
		n, err := s.inR.Read(buf)
		data := buf[:n]
		if upper {
			data = []byte(strings.ToUpper(string(data)))
		}
		if n > 0 {
			if err := s.out(execution.Stdout, data); err != nil {
				return err
			}
		}
		if err != nil {
			return context.Cause(s.ctx)
		}
	}
}

// spew writes n bytes of the alphabet in blocks of 16 KiB, so that a test can fill windows and limits.
func (s *session) spew(n int) error {
	block := make([]byte, 16<<10)
	for i := range block {
		block[i] = byte('a' + i%26)
	}
	for n > 0 {
		if err := s.out(execution.Stdout, block[:min(n, len(block))]); err != nil {
			return err
		}
		n -= len(block)
	}
	return nil
}

// out hands one frame over, and blocks while nobody reads, as flow control does. A terminal turns line ends into CR
// LF. The offset moves on even if the frame does not arrive, which makes the receipt truncated.
func (s *session) out(stream execution.Stream, data []byte) error {
	if s.spec.TTY && stream == execution.Stdout {
		data = []byte(strings.ReplaceAll(string(data), "\n", "\r\n"))
	}
	s.mu.Lock()
	offset := s.offsets[stream]
	s.offsets[stream] += int64(len(data))
	s.all = append(s.all, execution.Frame{Stream: stream, Offset: offset, Data: slices.Clone(data)})
	s.mu.Unlock()
	select {
	case s.frames <- execution.Frame{Stream: stream, Offset: offset, Data: slices.Clone(data)}:
		return nil
	case <-s.ctx.Done():
		s.mu.Lock()
		s.truncated = true
		s.mu.Unlock()
		return context.Cause(s.ctx)
	}
}

// Next fails with Unavailable while the link is cut, and with Gone when there are no more frames.
func (s *session) Next(ctx context.Context) (execution.Frame, error) {
	s.mu.Lock()
	cut, again := s.cut, s.again
	s.again = nil
	s.mu.Unlock()
	if again != nil {
		return execution.Frame{Receipt: again}, nil
	}
	select {
	case <-cut:
		return execution.Frame{}, drover.Errorf(drover.Unavailable, "the link broke")
	case f, ok := <-s.frames:
		if !ok {
			return execution.Frame{}, drover.Errorf(drover.Gone, "the runner ended")
		}
		return f, nil
	case <-ctx.Done():
		return execution.Frame{}, ctx.Err()
	}
}

// Write imitates two keys of a terminal: ctrl-c at the end of the input interrupts, ctrl-d there ends stdin.
// Otherwise it blocks until a command has read everything.
func (s *session) Write(_ context.Context, p []byte) error {
	if s.spec.TTY && len(p) > 0 && p[len(p)-1] == 3 { // ctrl-c
		s.cancel(signalError("INT"))
		return nil
	}
	if s.spec.TTY && len(p) > 0 && p[len(p)-1] == 4 { // ctrl-d
		_, _ = s.inW.Write(p[:len(p)-1])
		return s.inW.Close()
	}
	_, err := s.inW.Write(p)
	return err
}

// CloseStdin does not arrive while the link is cut.
func (s *session) CloseStdin(context.Context) error {
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	select {
	case <-cut:
		return drover.Errorf(drover.Unavailable, "the link broke")
	default:
		return s.inW.Close()
	}
}

// Resize only records the size, for tests to look at.
func (s *session) Resize(_ context.Context, size execution.WindowSize) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Sizes = append(s.Sizes, size)
	return nil
}

// Signal ends all commands for KILL, INT and TERM. Errors: Invalid for any other name.
func (s *session) Signal(_ context.Context, name string) error {
	switch strings.TrimPrefix(name, "SIG") {
	case "KILL":
		s.cancel(errKilled)
	case "INT", "TERM":
		s.cancel(signalError(name))
	default:
		return drover.Errorf(drover.Invalid, "unknown signal %q", name)
	}
	return nil
}

// breakLink breaks the session's link, if that is not broken already.
func (s *session) breakLink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.cut:
	default:
		close(s.cut)
	}
}

// forgotten reports whether the execution ended and was closed.
func (s *session) forgotten() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// waits reports whether its end waits for the next reader.
func (s *session) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.untaken
}

// Untaken is Close, but after the end the next reader gets all of it.
func (s *session) Untaken() {
	s.mu.Lock()
	s.untaken = s.over
	s.mu.Unlock()
	_ = s.Close() // it never fails
}

// Close kills an execution that may not run detached. A cut link changes nothing, since the node does not see the
// close.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.cut:
		return nil // the supervisor keeps it for a grace
	default:
	}
	if s.over || s.spec.Detach == 0 {
		s.once.Do(func() { close(s.closed) })
		s.cancel(errKilled)
	}
	return nil
}
