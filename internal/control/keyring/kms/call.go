package kms

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// caller makes calls, and makes them again where that can help.
type caller struct {
	provider string // for errors
	clock    clock.Clock
	client   *http.Client
}

const (
	// maxAnswer bounds what is read of an answer, in bytes: a wrapped key has some hundred.
	maxAnswer = 1 << 20
	// maxTold bounds what is told of what a service says, in bytes.
	maxTold = 300
	// tries is how often a call is made that was throttled, or that a service had no time for.
	tries = 4
	// firstPause is how long the second try waits; the next one twice that. A service may ask for another pause.
	firstPause = 100 * time.Millisecond
)

func newCaller(provider string, c clock.Clock) caller {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme == "http" { // a metadata service, which no proxy reaches
			return nil, nil
		}
		return http.ProxyFromEnvironment(r)
	}
	return caller{provider, c, &http.Client{
		Transport: transport,
		// Tokens would go with it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is what a service says.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// request is a call that can be made again.
type request struct {
	method, url string
	header      http.Header
	body        []byte
	sign        func(context.Context, *http.Request) error // nil: nothing is signed
}

// fault is a refusal. Its text is the service's, in bounds.
type fault struct {
	status     int
	code, text string
}

// do makes a call and reads its answer into out; refusal reads what is no 200. It waits for a service that is throttling or that fails
// for the moment, as long as ctx has time. Errors: Unavailable, also of ctx; a fault is returned beside it.
func (c *caller) do(ctx context.Context, r request, out any, refusal func(answer) fault) (*fault, error) {
	pause := firstPause
	for n := 1; ; n++ {
		a, err := c.once(ctx, r)
		var f fault
		switch {
		case err != nil && (ctx.Err() != nil || n == tries || drover.CodeOf(err) != drover.Unavailable):
			return nil, err
		case err == nil && a.status == http.StatusOK:
			if json.Unmarshal(a.body, out) != nil {
				return nil, drover.Errorf(drover.Unavailable, "keyring %s: %s answers with something else than the service", c.provider, host(r.url))
			}
			return nil, nil
		case err == nil:
			f = refusal(a)
			f.status = a.status
			if err = c.refused(r, f); n == tries || !passing(f) {
				return &f, err
			}
			if seconds, _ := strconv.Atoi(a.header.Get("Retry-After")); seconds > 0 {
				pause = time.Duration(seconds) * time.Second
			}
		}
		if !clock.Sleep(ctx, c.clock, pause) {
			return nil, err // that of the call says more than that of ctx
		}
		pause *= 2
	}
}

// once makes the call once.
func (c *caller) once(ctx context.Context, r request) (answer, error) {
	h, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, drover.Errorf(drover.Invalid, "keyring %s: %w", c.provider, err)
	}
	h.Header = r.header.Clone()
	if r.sign != nil {
		if err := r.sign(ctx, h); err != nil {
			return answer{}, drover.Errorf(drover.Unavailable, "keyring %s: signing the call: %w", c.provider, err)
		}
	}
	resp, err := c.client.Do(h)
	if err != nil {
		return answer{}, drover.Errorf(drover.Unavailable, "keyring %s: %w", c.provider, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, drover.Errorf(drover.Unavailable, "keyring %s: reading the answer of %s: %w", c.provider, host(r.url), err)
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

func (c *caller) refused(r request, f fault) error {
	said := strings.TrimSpace(f.code + " " + f.text)
	return drover.Errorf(drover.Unavailable, "keyring %s: %s answers %d %s: %s", c.provider, host(r.url), f.status,
		http.StatusText(f.status), said[:min(len(said), maxTold)])
}

// passing reports whether the same call may do better a little later.
func passing(f fault) bool {
	return f.status == http.StatusTooManyRequests || f.status >= http.StatusInternalServerError || f.code == "ThrottlingException"
}

// host is the address of a service, without what a URL says of a key or an account.
func host(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "the service"
	}
	return u.Scheme + "://" + u.Host
}

// errorObject reads the errors of Google's and Azure's services, which have one form.
func errorObject(a answer) (f fault) {
	var doc struct {
		Error struct {
			Code    any    `json:"code"` // a number of Google's, a word of Azure's
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &doc) == nil {
		f.text = doc.Error.Message
		if f.code = doc.Error.Status; f.code == "" {
			f.code, _ = doc.Error.Code.(string)
		}
	}
	return f
}
