package term

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/clock"
)

// Round cuts a duration to about three digits, for people.
func Round(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	case d < time.Second:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// Plural writes a count with its noun: "1 node", "2 nodes".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Table prints rows under a heading, if there is one, whose columns are parted by "|". Without rows it prints none alone. Empty cells
// become "-". At a terminal long cells are cut so that lines fit, and words for states have colours. It changes rows. Errors: those of
// writing.
func Table(w io.Writer, none, heading string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = OneLine(cmp.Or(cell, "-"))
		}
	}
	if heading != "" {
		rows = append([][]string{strings.Split(heading, "|")}, rows...)
	}
	return screenOf(w).lay(w, rows, 2)
}

// Facts prints names and values, given in turn, one pair a line. Pairs with an empty value are left out, so callers
// pass "" for what is unknown. At a terminal words for states have colours; nothing is cut. Errors: those of writing.
func Facts(w io.Writer, pairs ...string) error {
	s, width := screenOf(w), 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, utf8.RuneCountInString(pairs[i]))
		}
	}
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			b.WriteString(pairs[i] + strings.Repeat(" ", width-utf8.RuneCountInString(pairs[i])) + " = " + s.paint(OneLine(pairs[i+1])) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// OneLine makes one line of a cell, without control characters (C0, DEL and C1): what a guest wrote must not move our cursor.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Section prints a heading between two parts.
func Section(w io.Writer, title string) { fmt.Fprintf(w, "\n%s\n", title) }

// Ago says how long ago a time in unix nanoseconds was, to the second. It is "" for 0 or less. A time in the future,
// by a clock that differs from ours, counts as now.
func Ago(ns int64) string {
	if ns <= 0 {
		return ""
	}
	d := clock.Wall{}.Now().Sub(time.Unix(0, ns)).Truncate(time.Second)
	if d < 0 {
		d = 0
	}
	return Span(d) + " ago"
}

// Span writes a duration in its two largest units, cut and not rounded: "2h5m" also for 2h5m59s.
func Span(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.String()
}

// Stamp writes a time in the local zone, to the second, in RFC 3339. It is "" for the zero time and for Unix time 0,
// as both mean "never".
func Stamp(t time.Time) string {
	if t.IsZero() || t.Unix() == 0 {
		return ""
	}
	return t.Local().Format("2006-01-02T15:04:05Z07:00")
}

// StampNanos is Stamp for unix nanoseconds; 0 is "".
func StampNanos(ns int64) string {
	if ns == 0 {
		return ""
	}
	return Stamp(time.Unix(0, ns))
}

// Bytes writes a size in binary units.
func Bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}

// Pairs writes a map as "a=1, b=2".
func Pairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ", ")
}

// YesNo writes "yes" or "no".
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
