package evaluator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// worker is a child. One goroutine at a time uses it.
type worker struct {
	cfg    Config
	cmd    *exec.Cmd
	in     *os.File // its standard input
	out    *bufio.Reader
	files  []*os.File // our ends
	errs   *os.File   // its standard error
	spent  bool       // it serves no more
	reason string     // of its end
}

// start returns a child that is ready.
func start(cfg Config) (*worker, error) {
	if !able.Load() {
		return nil, drover.Errorf(drover.Internal, "%s cannot be evaluated: this program is no evaluator when it is executed again", cfg.What)
	}
	w, err := launch(cfg)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "%s cannot be evaluated: no process can be started for it: %w", cfg.What, err)
	}
	ctx, cancel := cfg.Clock.WithTimeout(context.Background(), cfg.Limits.Wall) //nolint:forbidigo // of nobody's call: others may get it
	defer cancel()
	if _, err = w.answer(ctx, nil); err != nil {
		w.end()
		return nil, drover.Errorf(drover.Internal, "%s cannot be evaluated: the process for it does not begin: %w", cfg.What, err)
	}
	return w, nil
}

func launch(cfg Config) (_ *worker, err error) {
	var files []*os.File
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				files = append(files, r, w)
			}
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		return nil, err
	}
	w := &worker{cfg: cfg, in: inW, errs: errR, out: bufio.NewReaderSize(outR, 32<<10), files: []*os.File{inW, outR, errR}}
	w.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{title, cfg.Limits.argument()}, Dir: "/", Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=none"},
		Stdin: inR, Stdout: outW, Stderr: errW, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // a terminal's signals are not for it
	}
	if err = w.cmd.Start(); err != nil {
		return nil, err
	}
	closeAll([]*os.File{inR, outW, errW})
	return w, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // pipes
	}
}

// ask has the request answered within the limits. Where the child does not survive that, it is spent.
func (w *worker) ask(ctx context.Context, name string, content []byte) ([]byte, error) {
	limited, cancel := w.cfg.Clock.WithTimeout(ctx, w.cfg.Limits.Wall)
	defer cancel()
	result, err := w.answer(limited, func() error { return writeFrame(w.in, []byte(name), content) })
	if err == nil || !errors.Is(err, errLost) {
		return result, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, drover.Errorf(drover.TooLarge, "%s takes longer than %v to evaluate", w.cfg.What, w.cfg.Limits.Wall)
	case errors.Is(err, errTooLong):
		return nil, drover.Errorf(drover.TooLarge, "%s becomes larger than %d MB", w.cfg.What, w.cfg.Limits.Answer>>20)
	}
	return nil, w.why()
}

// errLost: the child gave no answer and is no more.
var errLost = errors.New("it gave no answer")

// answer sends something, if there is something to send, and reads what comes. When ctx ends the child is killed. Errors:
// errLost, and then the worker is spent; those of functions.
func (w *worker) answer(ctx context.Context, send func() error) (result []byte, err error) {
	stop := context.AfterFunc(ctx, func() { _ = w.cmd.Process.Kill() }) // fails only for one that has ended
	defer func() {
		if !stop() { // it was or will be killed, whatever it answered
			w.spent = true
		}
	}()
	sent := make(chan struct{})
	if send != nil {
		go func() { // ends when the child has read it or is gone: it may answer before it read all
			defer close(sent)
			_ = send() // the answer shows it
		}()
	} else {
		close(sent)
	}
	kind, err := readPart(w.out, 1)
	if err == nil {
		result, err = readPart(w.out, w.cfg.Limits.Answer)
	}
	if err != nil || len(kind) != 1 {
		w.spent = true
		w.end()
		<-sent
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	<-sent
	w.spent = w.spent || kind[0]&answerSpent != 0
	if kind[0]&answerError != 0 && len(result) > 0 {
		return nil, drover.Errorf(drover.Code(result[0]), "%s", result[1:])
	}
	return result, nil
}

// lives reports whether the child has not ended meanwhile.
func (w *worker) lives() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, w.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == 0
}

// end kills the child, waits for it and returns its last words.
func (w *worker) end() string {
	if w.cmd.ProcessState != nil {
		return w.reason
	}
	_ = w.cmd.Process.Kill() // fails only for one that has ended
	err := w.cmd.Wait()
	words, _ := io.ReadAll(io.LimitReader(w.errs, 4<<10)) // it has no children, so nobody else writes there
	w.reason = strings.TrimSpace(string(words))
	if err != nil {
		w.reason = strings.TrimSpace(err.Error() + " " + w.reason)
	}
	closeAll(w.files)
	return w.reason
}

// noMemory is what a child without memory says. The last is Go's collector itself, which uses what it was refused without
// a look (runtime.newSpanSPMC); a nil pointer in our own code ends as a panic, in other words.
var noMemory = []string{ // constant
	"out of memory", "cannot allocate memory", "stack exceeds", "stack overflow", "pthread_create", "create new OS thread",
	"ThreadSanitizer failed to allocate", "too many address space collisions", "sigcode=1 addr=0x0",
}

// why says what ended the child, in words that help who wrote the text.
func (w *worker) why() error {
	said := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(w.reason, p) {
				return true
			}
		}
		return false
	}
	switch {
	case said(syscall.SIGXCPU.String()):
		return drover.Errorf(drover.TooLarge, "%s takes longer than %v of processor time to evaluate", w.cfg.What, w.cfg.Limits.CPU)
	case said(noMemory...):
		return drover.Errorf(drover.TooLarge, "%s needs more than %d MB of memory to evaluate", w.cfg.What, w.cfg.Limits.Memory>>20)
	case said("signal: killed"):
		return drover.Errorf(drover.TooLarge,
			"the process that evaluated %s was killed, most likely because the machine had no memory left", w.cfg.What)
	}
	return drover.Errorf(drover.Internal, "the process that evaluated %s ended: %s", w.cfg.What, w.reason)
}
