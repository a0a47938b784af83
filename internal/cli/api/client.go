package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// Client calls the Nomad API of an agent. Address has a scheme; the other texts may be empty, and then the agent's
// defaults count. It may be used by several goroutines.
type Client struct {
	HTTP      *http.Client
	Address   string
	Token     string
	Namespace string
	Region    string
}

// New returns the client of the Nomad API at the target. Errors: Invalid for settings that cannot be used.
func New(t Target) (*Client, error) {
	token, err := t.Secret()
	if err != nil {
		return nil, err
	}
	h, err := t.HTTPClient()
	if err != nil {
		return nil, err
	}
	return &Client{HTTP: h, Address: t.base(), Token: token, Namespace: t.Namespace, Region: t.Region}, nil
}

// statusCodes turn a status back into a code; the face's body is the message. A status that is not here gives
// Internal.
var statusCodes = map[int]drover.Code{
	http.StatusBadRequest: drover.Invalid, http.StatusUnauthorized: drover.Unauthorized, http.StatusForbidden: drover.Forbidden,
	http.StatusNotFound: drover.NotFound, http.StatusGone: drover.Gone, http.StatusConflict: drover.Conflict,
	http.StatusRequestEntityTooLarge: drover.TooLarge, http.StatusTooManyRequests: drover.RateLimited,
	http.StatusNotImplemented: drover.NotImplemented, http.StatusServiceUnavailable: drover.Unavailable,
}

// Open sends a request and returns its answer, which the caller closes. Errors have the code of the status.
func (c *Client) Open(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	if in == nil {
		return c.Upload(ctx, method, path, query, nil, 0, nil)
	}
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return c.Upload(ctx, method, path, query, bytes.NewReader(data), int64(len(data)), nil)
}

// Upload is Open with a body of the size that is sent as it is, and with headers of its own.
func (c *Client) Upload(
	ctx context.Context, method, path string, query url.Values, body io.Reader, size int64, header http.Header,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Url(path, query), body)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "address %q: %w", c.Address, err)
	}
	req.ContentLength = size
	maps.Copy(req.Header, header)
	c.Authorize(req.Header)
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, c.Unreachable(ctx, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		// The bound keeps the page of a wrong server from filling the terminal.
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status says enough if it cannot be read
		// An agent always says why it refuses; a proxy or another program may not.
		if len(strings.TrimSpace(string(text))) == 0 {
			return nil, drover.Errorf(drover.Unavailable, "%s answers %s without a word to %s: it is perhaps no agent",
				c.Address, res.Status, path)
		}
		said := message(strings.TrimSpace(string(text)))
		if needs := res.Header.Get("Drover-Needs"); needs != "" {
			said += " (it needs " + needs + ")"
		}
		return nil, drover.Errorf(statusCodes[res.StatusCode], "%s", said)
	}
	return res, nil
}

// message is what an error's body says in words: Drover's own API has it in JSON, Nomad's sends it as it is.
func message(body string) string {
	var problem struct{ Message string }
	if json.Unmarshal([]byte(body), &problem) == nil && problem.Message != "" {
		return problem.Message
	}
	return body
}

// Call sends a request and decodes its answer into out, unless that is nil.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) (http.Header, error) {
	res, err := c.Open(ctx, method, path, query, in)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, res.Body)
	} else {
		err = json.NewDecoder(res.Body).Decode(out)
	}
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "reading the agent's answer: %w", err)
	}
	return res.Header, nil
}

// Get reads path into out and returns the index for a blocking query, 0 if the answer has none. Errors: the API's;
// Unavailable for an answer that cannot be read.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) (index uint64, err error) {
	h, err := c.Call(ctx, http.MethodGet, path, query, nil, out)
	if err != nil {
		return 0, err
	}
	index, _ = strconv.ParseUint(h.Get("X-Nomad-Index"), 10, 64) // 0: there is none, which never blocks
	return index, nil
}

// Put writes in to path and reads the answer into out, unless that is nil.
func (c *Client) Put(ctx context.Context, path string, query url.Values, in, out any) error {
	_, err := c.Call(ctx, http.MethodPut, path, query, in, out)
	return err
}

// Delete deletes what is at path and reads the answer into out, unless that is nil.
func (c *Client) Delete(ctx context.Context, path string, query url.Values, out any) error {
	_, err := c.Call(ctx, http.MethodDelete, path, query, nil, out)
	return err
}

// Url completes a path with the query, the namespace and the region. A namespace in the query comes before the chosen
// one. The query itself is not changed.
func (c *Client) Url(path string, query url.Values) string {
	q := url.Values{}
	maps.Copy(q, query)
	if c.Namespace != "" && !q.Has("namespace") {
		q.Set("namespace", c.Namespace)
	}
	if c.Region != "" {
		q.Set("region", c.Region)
	}
	out := strings.TrimRight(c.Address, "/") + path
	if len(q) > 0 {
		out += "?" + q.Encode()
	}
	return out
}

// Authorize adds the token to a request's header.
func (c *Client) Authorize(h http.Header) {
	if c.Token != "" {
		h.Set("X-Nomad-Token", c.Token)
	}
}

// Unreachable returns the error for a request without an answer: Canceled if ctx ended, else Unavailable. Go's "Get
// URL:" before the cause is dropped, since the cause names the address.
func (c *Client) Unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return drover.Errorf(drover.Canceled, "%w", context.Cause(ctx))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return drover.Errorf(drover.Unavailable, "%w", err)
}

// Anywhere returns a query over all namespaces unless one was chosen: for ids that are unique without it. The caller
// may add to it.
func (c *Client) Anywhere() url.Values {
	if c.Namespace != "" {
		return url.Values{}
	}
	return url.Values{"namespace": {"*"}}
}

// CopyTo writes an answer's body to w as it comes. That ctx ended is no error: whoever follows a log ends it so.
// Errors: the API's; Unavailable if the connection broke.
func (c *Client) CopyTo(ctx context.Context, w io.Writer, path string, q url.Values) error {
	res, err := c.Open(ctx, http.MethodGet, path, q, nil)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(w, res.Body)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return drover.Errorf(drover.Unavailable, "reading from the agent: %w", err)
	}
	return nil
}
