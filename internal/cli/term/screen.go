package term

import (
	"cmp"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is how wide lines may be, and whether they may have colours. What is no terminal has neither bound nor colours.
type screen struct {
	width  int // 0: any
	colour bool
}

// screenOf returns what w shows. A terminal is of this process, and so is its environment.
func screenOf(w io.Writer) screen {
	if s, ok := w.(*sheet); ok {
		return s.screen
	}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return screen{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return screen{width: width, colour: colourful(os.Getenv, runtime.GOOS)}
}

// colourful tells whether the user of a terminal wants colours (https://no-color.org), and it can show them.
func colourful(getenv func(string) string, system string) bool {
	if getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	// Consoles of Windows show escape sequences as they are, but in its newer terminal.
	return system != "windows" || cmp.Or(getenv("WT_SESSION"), getenv("TERM")) != ""
}

// colours are the escape sequences of what can be seen at a glance: what goes well, what waits, what failed. A job that is dead, or an
// allocation that is complete, may be either.
var colours = map[string]string{
	"running": green, "ready": green, "eligible": green, "successful": green, "pass": green, "success": green, "passing": green,
	"pending": yellow, "blocked": yellow, "paused": yellow, "initializing": yellow, "ineligible": yellow, "disconnected": yellow,
	"unknown": yellow, "queued": yellow, "draining": yellow,
	"failed": red, "lost": red, "down": red, "fail": red, "failure": red, "unhealthy": red,
}

const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	plain  = "\x1b[0m"
)

// paint returns the text in the colour that it has by itself.
func (s screen) paint(text string) string {
	if colour := colours[text]; s.colour && colour != "" {
		return colour + text + plain
	}
	return text
}

// narrowest is how narrow a column is made for others: with less nothing could be told apart.
const narrowest = 12

// lay writes rows of cells, of which each has a line, in columns that are gap apart. Where they are wider than the screen, the widest
// columns are cut, but never the first, which says what a row is of. Errors: those of writing.
func (s screen) lay(w io.Writer, rows [][]string, gap int) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	s.fit(widths, gap)
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			cell = cut(cell, widths[i])
			b.WriteString(s.paint(cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fit makes columns as narrow as the screen asks for.
func (s screen) fit(widths []int, gap int) {
	total := gap * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for s.width > 0 && total > s.width {
		widest := 0
		for i, n := range widths {
			if i > 0 && n > narrowest && (widest == 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 {
			return
		}
		widths[widest]--
		total--
	}
}

// cut returns at most n letters of a text, with a sign that there are more.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}
