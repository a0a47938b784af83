package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Client talks to one server. It is safe for use by several goroutines.
type Client struct {
	base      *url.URL
	token     string
	namespace string
	http      *http.Client
}

// Option changes a Client.
type Option func(*Client)

// WithToken sends the token with every request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithNamespace has environments looked for, made and claimed from in another namespace than the default. Lists take "*", which is all.
func WithNamespace(namespace string) Option { return func(c *Client) { c.namespace = namespace } }

// WithHTTPClient uses another http.Client than one with http.DefaultTransport's settings and more connections kept open.
// For many short calls from one program, a client with the transport of package fastpath costs less a call.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// New returns a client of the server at the address, as in "http://127.0.0.1:4646". It does not connect yet.
func New(address string, options ...Option) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, drover.Errorf(drover.Invalid, "address %q: want http://host:port or https://host:port", address)
	}
	c := &Client{base: base, http: &http.Client{Transport: newTransport()}}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// keptOpen is how many idle connections to the server are kept: as many calls at once need no new ones. net/http keeps 2.
const keptOpen = 100

func newTransport() http.RoundTripper {
	std, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // somebody put another there
		return http.DefaultTransport
	}
	own := std.Clone()
	own.MaxIdleConnsPerHost = keptOpen
	return own
}

// keyed is the key of an idempotency key in a context.
type keyed struct{}

// WithIdempotencyKey returns a context whose claim, execution or run is carried out once, however often it is asked for:
// repetitions with the same key and request are answered as the first was. Take a new key for each.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyed{}, key)
}

// In returns the client of another namespace: see WithNamespace.
func (c *Client) In(namespace string) *Client {
	other := *c
	other.namespace = namespace
	return &other
}

// within adds the namespace that is asked for to a query: that of the environment's key, else the one given, else the client's.
func (c *Client) within(namespace, environment string, query url.Values) url.Values {
	if execution.IsKey(environment) {
		namespace = execution.NamespaceOf(environment)
	}
	if namespace = cmp.Or(namespace, c.namespace); namespace == "" {
		return query
	}
	if query == nil {
		query = url.Values{}
	}
	query.Set("namespace", namespace)
	return query
}

// url joins escaped path elements and the query.
func (c *Client) url(path []string, query url.Values) string {
	escaped := make([]string, len(path))
	for i, p := range path {
		escaped[i] = url.PathEscape(p)
	}
	u := *c.base
	u.Path, u.RawPath = "", ""
	out := strings.TrimSuffix(u.String(), "/") + strings.TrimSuffix(c.base.EscapedPath(), "/") + "/v1/" + strings.Join(escaped, "/")
	if len(query) > 0 {
		out += "?" + query.Encode()
	}
	return out
}

// request is one call.
type request struct {
	method  string
	path    []string
	query   url.Values
	body    io.Reader
	headers map[string]string
}

// do sends the request. The caller closes the response's body. Errors: the server's, Unavailable if it is not reached.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r.path, r.query), r.body)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "making the request: %w", err)
	}
	c.authorize(req.Header)
	if key, ok := ctx.Value(keyed{}).(string); ok && r.method == http.MethodPost {
		req.Header.Set("Idempotency-Key", key)
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	res, err := c.http.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, drover.Errorf(drover.Canceled, "%w", context.Cause(ctx))
	case err != nil:
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, drover.Errorf(drover.Unavailable, "reaching %s: %w", c.base.Host, err)
	case res.StatusCode >= http.StatusBadRequest:
		defer res.Body.Close()
		return nil, problem(res)
	}
	return res, nil
}

func (c *Client) authorize(h http.Header) {
	if c.token != "" {
		h.Set("X-Drover-Token", c.token)
	}
}

// problem reads an error's body.
func problem(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var p struct{ Code, Message string }
	if err != nil || json.Unmarshal(text, &p) != nil || p.Message == "" {
		return drover.Errorf(codeOf(res.StatusCode), "the server answered %s: %s", res.Status, bytes.TrimSpace(text))
	}
	return drover.Errorf(drover.ParseCode(p.Code), "%s", p.Message)
}

// codeOf is for answers that are only text: those of Nomad's routes, and of proxies.
func codeOf(status int) drover.Code {
	switch status {
	case http.StatusBadRequest:
		return drover.Invalid
	case http.StatusUnauthorized:
		return drover.Unauthorized
	case http.StatusForbidden:
		return drover.Forbidden
	case http.StatusNotFound:
		return drover.NotFound
	case http.StatusGone:
		return drover.Gone
	case http.StatusTooManyRequests:
		return drover.RateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return drover.Unavailable
	}
	return drover.Internal
}

// call sends in as JSON (nil: no body) and reads the answer into out (nil: none).
func (c *Client) call(ctx context.Context, method string, path []string, query url.Values, in, out any) (status int, err error) {
	r := request{method: method, path: path, query: query, headers: map[string]string{"Accept": "application/json"}}
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, drover.Errorf(drover.Invalid, "encoding the request: %w", err)
		}
		r.body = bytes.NewReader(text)
		r.headers["Content-Type"] = "application/json"
	}
	res, err := c.do(ctx, r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if out == nil {
		if _, err = io.Copy(io.Discard, res.Body); err != nil {
			return res.StatusCode, broken(ctx, "reading the answer", err)
		}
		return res.StatusCode, nil
	}
	text, err := io.ReadAll(res.Body) // to its end, so that the connection is kept
	if err != nil {
		return res.StatusCode, broken(ctx, "reading the answer", err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return res.StatusCode, drover.Errorf(drover.Internal, "decoding the answer: %w", err)
	}
	return res.StatusCode, nil
}
