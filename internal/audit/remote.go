package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// remote is the backend of sinks that cannot take lines back: what they may have taken already is sent again as it was.
type remote struct {
	send  func(lines []byte) (taken int, err error) // taken are the bytes that need not be sent again
	end   func()
	node  string
	begun bool
	unset []byte // lines of which it is not known that they were taken
}

// start sends what is left of the last batch. Errors: those of the sink, which takes nothing new until then.
func (r *remote) start(c *chain, _ time.Time) (*record, error) {
	if len(r.unset) > 0 {
		n, err := r.send(r.unset)
		if r.unset = r.unset[n:]; err != nil {
			return nil, err
		}
	}
	if r.begun {
		return nil, nil
	}
	reason, former := "restart", c.head
	if c.seq == 0 {
		reason = "first"
	}
	return &record{Reason: reason, Node: r.node, Former: &former}, nil
}

func (r *remote) write(lines []byte) (kept bool, err error) {
	r.begun = true
	n, err := r.send(lines)
	if err != nil {
		r.unset = slices.Clone(lines[n:])
	}
	return err != nil, err
}

func (r *remote) close() {
	if r.end != nil {
		r.end()
	}
}

// HTTP configures a sink that is a server of HTTP, to which lines are posted.
type HTTP struct {
	URL    string
	Header http.Header // of each request
	Client *http.Client
}

// poster posts lines as application/x-ndjson. Any answer 2xx says that all were taken.
func poster(ctx context.Context, cfg HTTP) func(lines []byte) (int, error) {
	return func(lines []byte) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, patience/2)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.URL, bytes.NewReader(lines))
		if err != nil {
			return 0, err
		}
		for key, values := range cfg.Header {
			req.Header[key] = values
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		res, err := cfg.Client.Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 512)) // for the reason alone
		if res.StatusCode < 200 || res.StatusCode > 299 {
			return 0, drover.Errorf(drover.Unavailable, "%s answered %s: %s", cfg.URL, res.Status, strings.TrimSpace(string(text)))
		}
		return len(lines), nil
	}
}

// liner sends lines one by one.
func liner(w io.Writer) func(lines []byte) (int, error) {
	return func(lines []byte) (taken int, err error) {
		for line := range bytes.SplitAfterSeq(lines, []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			if _, err := w.Write(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return taken, fmt.Errorf("syslog: %w", err)
			}
			taken += len(line)
		}
		return taken, nil
	}
}
