package alloc

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/api"
)

// tail says what of a file is printed: all of it or its end, and whether it is followed. Without lines and bytes, the
// end is 10 lines; bytes come before lines.
type tail struct {
	follow, end bool
	lines       int
	bytes       int64
}

// bind adds the flags; follow is the text of -follow's help, which differs between files and logs.
func (t *tail) bind(fl *pflag.FlagSet, follow string) {
	fl.BoolVarP(&t.follow, "follow", "f", false, follow)
	fl.BoolVar(&t.end, "tail", false, "only the end: 10 lines, or as many as -n or -c say")
	fl.IntVarP(&t.lines, "lines", "n", 0, "with -tail: how many lines")
	fl.Int64VarP(&t.bytes, "bytes", "c", 0, "with -tail: how many bytes")
}

// wantsEnd reports whether only the end is printed: a number alone says so too, as in tail(1).
func (t *tail) wantsEnd() bool { return t.end || t.lines > 0 || t.bytes > 0 }

// print prints what the route path streams of a file of size bytes. It sets parameters of q. Errors: the API's; those
// of writing. That ctx ended is none.
func (t *tail) print(ctx context.Context, c *api.Client, w io.Writer, path string, q url.Values, size int64) error {
	// Bytes as they are, in place of Nomad's frames of JSON.
	q.Set("plain", "true")
	q.Set("follow", strconv.FormatBool(t.follow))
	if !t.wantsEnd() {
		return c.CopyTo(ctx, w, path, q)
	}
	q.Set("origin", "end")
	if t.bytes > 0 {
		// A file that is shorter is printed as a whole; for logs the server bounds the offset.
		q.Set("offset", strconv.FormatInt(min(t.bytes, size), 10))
		return c.CopyTo(ctx, w, path, q)
	}
	lines := t.lines
	if lines <= 0 {
		lines = 10
	}
	return lastLines(ctx, c, w, path, q, lines, t.follow)
}

// tailGuess is how many bytes are looked at first for each line: longer lines are rare, and cost another request
// only.
const tailGuess = 1 << 10

// lastLines prints the last lines of a file, then follows it from there if it shall. The API counts bytes only, so it
// looks back for a guess, and for eight times as much until the lines are found. Errors: the API's; those of writing.
func lastLines(ctx context.Context, c *api.Client, w io.Writer, path string, q url.Values, lines int, follow bool) error {
	q.Set("follow", "false")
	var text []byte
	for back := int64(lines) * tailGuess; ; back *= 8 {
		q.Set("offset", strconv.FormatInt(back, 10))
		var b bytes.Buffer
		if err := c.CopyTo(ctx, &b, path, q); err != nil {
			return err
		}
		text = b.Bytes()
		// The whole file was read, or one more line end than lines: then the first line is whole.
		if int64(len(text)) < back || bytes.Count(text, []byte("\n")) > lines {
			break
		}
	}
	text = lastOf(text, lines)
	if !follow {
		_, err := w.Write(text)
		return err
	}
	q.Set("follow", "true")
	q.Set("offset", strconv.Itoa(len(text)))
	return c.CopyTo(ctx, w, path, q)
}

// lastOf returns the last lines of text, or all of it if it has fewer. A line end at the very end begins no new line.
func lastOf(text []byte, lines int) []byte {
	end := len(text)
	if end > 0 && text[end-1] == '\n' {
		end--
	}
	for range lines {
		at := bytes.LastIndexByte(text[:end], '\n')
		if at < 0 {
			return text
		}
		end = at
	}
	return text[end+1:]
}
