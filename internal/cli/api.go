package cli

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

// api calls the Nomad face. The address and token come from flags or from DROVER_… and NOMAD_… variables.
type api struct {
	http      *http.Client
	address   string
	token     string
	namespace string
	region    string
}

// statusCodes turn a status back into a code; the face's body is the message.
var statusCodes = map[int]drover.Code{
	http.StatusBadRequest: drover.Invalid, http.StatusUnauthorized: drover.Unauthorized, http.StatusForbidden: drover.Forbidden,
	http.StatusNotFound: drover.NotFound, http.StatusGone: drover.Gone, http.StatusConflict: drover.Conflict,
	http.StatusRequestEntityTooLarge: drover.TooLarge, http.StatusTooManyRequests: drover.RateLimited,
	http.StatusNotImplemented: drover.NotImplemented, http.StatusServiceUnavailable: drover.Unavailable,
}

// open sends a request and returns its answer, which the caller closes. Errors have the code of the status.
func (c *api) open(ctx context.Context, method, path string, query url.Values, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url(path, query), body)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "address %q: %w", c.address, err)
	}
	c.authorize(req.Header)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status says enough if it cannot be read
		if len(strings.TrimSpace(string(text))) == 0 {
			return nil, drover.Errorf(drover.Unavailable, "%s answers %s without a word to %s: it is perhaps no agent", c.address, res.Status, path)
		}
		return nil, drover.Errorf(statusCodes[res.StatusCode], "%s", strings.TrimSpace(string(text)))
	}
	return res, nil
}

// call sends a request and decodes its answer into out, unless that is nil.
func (c *api) call(ctx context.Context, method, path string, query url.Values, in, out any) (http.Header, error) {
	res, err := c.open(ctx, method, path, query, in)
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

// get reads path into out and returns the index for a blocking query.
func (c *api) get(ctx context.Context, path string, query url.Values, out any) (index uint64, err error) {
	h, err := c.call(ctx, http.MethodGet, path, query, nil, out)
	if err != nil {
		return 0, err
	}
	index, _ = strconv.ParseUint(h.Get("X-Nomad-Index"), 10, 64) // 0: there is none, which never blocks
	return index, nil
}

// put writes in to path and reads the answer into out, unless that is nil.
func (c *api) put(ctx context.Context, path string, query url.Values, in, out any) error {
	_, err := c.call(ctx, http.MethodPut, path, query, in, out)
	return err
}

// url completes a path with the query, the namespace and the region.
func (c *api) url(path string, query url.Values) string {
	q := url.Values{}
	maps.Copy(q, query)
	if c.namespace != "" && !q.Has("namespace") {
		q.Set("namespace", c.namespace)
	}
	if c.region != "" {
		q.Set("region", c.region)
	}
	out := strings.TrimRight(c.address, "/") + path
	if len(q) > 0 {
		out += "?" + q.Encode()
	}
	return out
}

func (c *api) authorize(h http.Header) {
	if c.token != "" {
		h.Set("X-Nomad-Token", c.token)
	}
}

// unreachable is why there is no answer.
func (c *api) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return drover.Errorf(drover.Canceled, "%w", context.Cause(ctx))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return drover.Errorf(drover.Unavailable, "%w", err)
}

// anywhere is a query over all namespaces unless one was chosen: for ids that are unique without it.
func (c *api) anywhere() url.Values {
	if c.namespace != "" {
		return url.Values{}
	}
	return url.Values{"namespace": {"*"}}
}
