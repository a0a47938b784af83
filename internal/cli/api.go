package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"drover"
)

// api calls the Nomad face. The address and token come from flags or from DROVER_… and NOMAD_… variables.
type api struct {
	http      *http.Client
	address   string
	token     string
	namespace string
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
	if c.namespace != "" && query.Get("namespace") == "" {
		if query == nil {
			query = url.Values{}
		}
		query.Set("namespace", c.namespace)
	}
	target := strings.TrimRight(c.address, "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "address %q: %w", c.address, err)
	}
	if c.token != "" {
		req.Header.Set("X-Nomad-Token", c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "asking the agent: %w", err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status says enough if it cannot be read
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
