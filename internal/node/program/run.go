package program

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Call is one run of a program.
type Call struct {
	Path  string
	Args  []string
	Env   []string // nil: the agent's
	Dir   string   // "": the agent's
	Stdin []byte
	Most  int // bytes of each stream that are read
}

// ErrTooMuch is of a program that printed more than Call.Most bytes. It is ended.
var ErrTooMuch = errors.New("it printed too much")

// endWait is how long the streams may stay open after the program's end, by a child that left its group.
const endWait = time.Second

// Run runs the program to its end, and ends it with the processes that it started when ctx ends. What it printed is returned beside an
// error, too. Errors: ErrTooMuch; else those of os/exec, also when ctx ended: ask ctx.
func (c *Call) Run(ctx context.Context) (stdout, stderr []byte, err error) {
	out, said := &bounded{most: c.Most}, &bounded{most: c.Most}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...) // the operator's
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = endWait
	err = cmd.Run()
	if out.more || said.more {
		err = ErrTooMuch
	}
	return out.kept.Bytes(), said.kept.Bytes(), err
}

// bounded keeps the first bytes of what is written.
type bounded struct {
	kept bytes.Buffer
	most int
	more bool
}

// Write keeps what there is room for. Then it fails, which ends a program that does not stop.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.most-b.kept.Len())
	b.kept.Write(p[:n])
	if b.more = b.more || n < len(p); b.more {
		return n, ErrTooMuch
	}
	return n, nil
}

// Plain makes what a program says fit for an event: one line of at most so many characters, without what a terminal would obey.
func Plain(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
