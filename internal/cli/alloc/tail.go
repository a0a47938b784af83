package alloc

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"strconv"

	"github.com/drover-project/drover/internal/cli/api"
)

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
