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

// tail says what of a file is printed: all of it or its end, and whether it is followed.
type tail struct {
	follow, end bool
	lines       int
	bytes       int64
}

func (t *tail) bind(fl *pflag.FlagSet, follow string) {
	fl.BoolVarP(&t.follow, "follow", "f", false, follow)
	fl.BoolVar(&t.end, "tail", false, "only the end: 10 lines, or as many as -n or -c say")
	fl.IntVarP(&t.lines, "lines", "n", 0, "with -tail: how many lines")
	fl.Int64VarP(&t.bytes, "bytes", "c", 0, "with -tail: how many bytes")
}

func (t *tail) wantsEnd() bool { return t.end || t.lines > 0 || t.bytes > 0 }

// print prints what the API streams of a file of so many bytes.
func (t *tail) print(ctx context.Context, c *api.Client, w io.Writer, path string, q url.Values, size int64) error {
	q.Set("plain", "true")
	q.Set("follow", strconv.FormatBool(t.follow))
	if !t.wantsEnd() {
		return c.CopyTo(ctx, w, path, q)
	}
	q.Set("origin", "end")
	if t.bytes > 0 {
		q.Set("offset", strconv.FormatInt(min(t.bytes, size), 10))
		return c.CopyTo(ctx, w, path, q)
	}
	lines := t.lines
	if lines <= 0 {
		lines = 10
	}
	return lastLines(ctx, c, w, path, q, lines, t.follow)
}

// tailGuess is how many bytes are looked at for a line.
const tailGuess = 1 << 10

// lastLines prints the last lines, looking back far enough to find them, and goes on from there if it shall follow.
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

// lastOf cuts text to its last lines.
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
