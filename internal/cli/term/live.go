package term

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// LiveScreen shows text that is replaced by newer text. It belongs to one goroutine.
type LiveScreen struct {
	out     io.Writer
	file    *os.File // nil: out is no terminal
	entered bool
}

// Escape sequences of terminals: the other screen and back, the first place, and what clears to the end of a line and of the screen.
const (
	otherScreen = "\x1b[?1049h"
	ownScreen   = "\x1b[?1049l"
	firstPlace  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// Live makes one of the app's output. At a terminal it uses the screen that leaves no trace.
func Live(app *App) *LiveScreen {
	l := &LiveScreen{out: app.Out}
	if file, ok := app.Out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		l.file = file
	}
	return l
}

// Refreshes tells whether newer text replaces older; without a terminal it comes after.
func (l *LiveScreen) Refreshes() bool { return l.file != nil }

// sheet is text for a screen on which it is not shown yet.
type sheet struct {
	bytes.Buffer
	screen screen
}

// Show shows what write writes, in which tables fit the screen. Lines that have no place are left out. What comes with an error is not
// shown. Errors: write's; those of writing.
func (l *LiveScreen) Show(write func(io.Writer) error) error {
	text := &sheet{screen: screenOf(l.out)}
	if err := write(text); err != nil {
		return err
	}
	if l.file == nil {
		_, err := l.out.Write(text.Bytes())
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if _, rows, err := term.GetSize(int(l.file.Fd())); err == nil && rows > 1 && len(lines) > rows-1 {
		lines = append(lines[:rows-2], "…")
	}
	start := firstPlace
	if !l.entered {
		start = otherScreen + firstPlace
		l.entered = true
	}
	_, err := fmt.Fprint(l.file, start, strings.Join(lines, clearLine+"\r\n"), clearLine, "\r\n", clearBelow)
	return err
}

// Close gives the terminal its own screen back.
func (l *LiveScreen) Close() {
	if l.entered {
		fmt.Fprint(l.file, ownScreen)
	}
}
