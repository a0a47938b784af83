package term

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Console is the terminal that a command was started from. Its methods belong to one goroutine, but for OnResize.
type Console struct {
	in, out *os.File
	// What it was before Raw; nil while it is not raw.
	state *term.State
}

// Raw makes the terminal pass every key on as it is, Ctrl-C too, until Restore. Errors: Internal.
func (t *Console) Raw() (err error) {
	if t.state, err = term.MakeRaw(int(t.in.Fd())); err != nil {
		return drover.Errorf(drover.Internal, "making the terminal raw: %w", err)
	}
	return nil
}

// Restore makes the terminal what it was before Raw. It may be called on nil, without Raw, and twice.
func (t *Console) Restore() {
	if t != nil && t.state != nil {
		_ = term.Restore(int(t.in.Fd()), t.state) // it may be gone
		t.state = nil
	}
}

// Size is the terminal's, in characters; 24 by 80 if it is not known.
func (t *Console) Size() execution.WindowSize {
	cols, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return execution.WindowSize{Rows: 24, Cols: 80}
	}
	return execution.WindowSize{Rows: uint16(rows), Cols: uint16(cols)} // a terminal's
}

// PumpInput hands what r yields to send, then ends the input. It is left behind when the program ends first: a read
// of a terminal cannot be interrupted, and the process ends soon.
func PumpInput(r io.Reader, send func([]byte) error, end func() error) {
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
