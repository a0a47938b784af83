package term

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
)

// EscapeHelp is told where a command can get a terminal.
const EscapeHelp = `With a terminal the command gets every key, Ctrl-C too. Typing ~. at the beginning of a line leaves it
(-escape sets another character); so does a signal to drover.`

// Escape is the character that leaves a terminal; 0 for none. It is a flag's value.
type Escape byte

// Bind adds the flags.
func (e *Escape) Bind(fl *pflag.FlagSet) {
	*e = '~'
	fl.VarP(e, "escape", "e", "the character that leaves a terminal, typed at the beginning of a line and followed by a dot; none: there "+
		"is no way out")
}

// Set implements pflag.Value. Errors: Invalid.
func (e *Escape) Set(text string) error {
	switch {
	case text == "none":
		*e = 0
	case len(text) == 1 && text[0] > ' ' && text[0] < 0x7f && text != ".":
		*e = Escape(text[0])
	default:
		return drover.Errorf(drover.Invalid, "want one character, or none")
	}
	return nil
}

// String implements pflag.Value.
func (e *Escape) String() string {
	if *e == 0 {
		return "none"
	}
	return string(rune(*e))
}

// Type implements pflag.Value.
func (e *Escape) Type() string { return "character" }

// Keys passes on what is typed into a terminal of which a program has every key, and watches for the escape. As in
// ssh, that counts at the beginning of a line only.
type Keys struct {
	Escape Escape
	Send   func([]byte) error
	Leave  func() // the user wants out

	within bool // a line
	held   bool // the escape was typed
}

var errLeft = errors.New("left")

// Type sends what is for the program. Typed twice the escape is for it once. Errors: send's; once the user left.
func (k *Keys) Type(p []byte) error {
	out := make([]byte, 0, len(p)+1)
	left := false
	for _, c := range p {
		if left = k.held && c == '.'; left {
			break
		}
		again := Escape(c) == k.Escape && k.Escape != 0
		if again && !k.held && !k.within {
			k.held = true
			continue
		}
		if k.held && !again {
			out = append(out, byte(k.Escape))
		}
		out = append(out, c)
		k.held, k.within = false, c != '\r' && c != '\n'
	}
	if len(out) > 0 {
		if err := k.Send(out); err != nil {
			return err
		}
	}
	if left {
		k.Leave()
		return errLeft
	}
	return nil
}
