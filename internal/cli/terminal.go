package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// console is the terminal that a command was started from, if it was.
type console struct {
	in, out *os.File
	state   *term.State
}

// console finds the terminal behind In and Out. Nil if either is none.
func (a *App) console() *console {
	in, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	out, ok := a.Out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return &console{in: in, out: out}
}

// raw hands every key to the program at the other end, until restore.
func (t *console) raw() (err error) {
	if t.state, err = term.MakeRaw(int(t.in.Fd())); err != nil {
		return drover.Errorf(drover.Internal, "making the terminal raw: %w", err)
	}
	return nil
}

// restore makes the terminal what it was.
func (t *console) restore() {
	if t != nil && t.state != nil {
		_ = term.Restore(int(t.in.Fd()), t.state) // it may be gone
		t.state = nil
	}
}

func (t *console) size() execution.WindowSize {
	cols, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return execution.WindowSize{Rows: 24, Cols: 80}
	}
	return execution.WindowSize{Rows: uint16(rows), Cols: uint16(cols)} //nolint:gosec // a terminal's
}

// pumpInput hands what r yields to send, then ends the input. It is left behind when the program ends first: a read
// of a terminal cannot be interrupted, and the process ends soon.
func pumpInput(r io.Reader, send func([]byte) error, end func() error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && send(buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = end() // the program may have ended
			return
		}
	}
}
