package kms

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
)

// bearer is a token of a cloud until it expires.
type bearer struct {
	fetch func(ctx context.Context) (request, error)

	mu    sync.Mutex // held while a token is fetched
	token string
	until time.Time // when another one is fetched
}

// early is how long before its end a token is no longer used.
const early = 2 * time.Minute

// get returns a token that is good for a while. Errors: Unavailable.
func (b *bearer) get(ctx context.Context, c *caller) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := c.clock.Now()
	if b.token != "" && now.Before(b.until) {
		return b.token, nil
	}
	r, err := b.fetch(ctx)
	if err != nil {
		return "", err
	}
	var out struct {
		Token   string      `json:"access_token"`
		Expires json.Number `json:"expires_in"` // Azure's metadata service gives it as a string
	}
	if _, err := c.do(ctx, r, &out, tokenRefusal); err != nil {
		return "", drover.Errorf(drover.CodeOf(err), "getting a token: %w", err)
	}
	seconds, err := strconv.ParseInt(out.Expires.String(), 10, 64)
	if out.Token == "" || err != nil {
		return "", drover.Errorf(drover.Unavailable, "keyring %s: %s answers without a token", c.provider, host(r.url))
	}
	b.token, b.until = out.Token, now.Add(time.Duration(min(max(seconds, 0), 1<<31))*time.Second-early)
	return b.token, nil
}

// forget has the next get fetch another token: the service refused this one.
func (b *bearer) forget(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.token == token {
		b.token = ""
	}
}

func tokenRefusal(a answer) (f fault) {
	var doc struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(a.body, &doc) // the status says it, too
	return fault{code: doc.Error, text: doc.Description}
}

// call posts in with a token, and once more with another one if the service does not know it. Errors: as do's.
func (c *caller) call(ctx context.Context, b *bearer, at string, in, out any) (*fault, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "keyring %s: %w", c.provider, err)
	}
	for again := false; ; again = true {
		token, err := b.get(ctx, c)
		if err != nil {
			return nil, err
		}
		f, err := c.do(ctx, request{
			method: http.MethodPost, url: at, body: body,
			header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}},
		}, out, errorObject)
		if f == nil || f.status != http.StatusUnauthorized || again {
			return f, err
		}
		b.forget(token)
	}
}

// form is a request with a form in its body.
func form(at string, values url.Values) request {
	return request{
		method: http.MethodPost, url: at, body: []byte(values.Encode()),
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	}
}

// trimmed is a URL without a slash at its end.
func trimmed(at string) string { return strings.TrimRight(at, "/") }
