package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// pathQuery carries any bytes as a path.
func pathQuery(path string, privileged bool) url.Values {
	q := url.Values{}
	if utf8.ValidString(path) {
		q.Set("path", path)
	} else {
		q.Set("pathBase64", base64.URLEncoding.EncodeToString([]byte(path)))
	}
	if privileged {
		q.Set("privileged", "true")
	}
	return q
}

// ListFiles lists a directory of a runner. Errors: NotFound, Forbidden, Gone.
func (c *Client) ListFiles(ctx context.Context, runner string, r execution.FileRequest) ([]execution.FileInfo, error) {
	query := pathQuery(r.Path, r.Privileged)
	if r.Recursive {
		query.Set("recursive", "true")
	}
	var list []struct {
		execution.FileInfo
		PathBase64 string
	}
	if _, err := c.call(ctx, http.MethodGet, []string{"runner", runner, "files"}, query, nil, &list); err != nil {
		return nil, err
	}
	infos := make([]execution.FileInfo, len(list))
	for i, f := range list {
		infos[i] = f.FileInfo
		if f.PathBase64 != "" {
			raw, err := base64.URLEncoding.DecodeString(f.PathBase64)
			if err != nil {
				return nil, drover.Errorf(drover.Internal, "decoding a name: %w", err)
			}
			infos[i].Path = string(raw)
		}
	}
	return infos, nil
}

// ChangeFiles makes the changes in order. Errors: Invalid, Forbidden, Gone.
func (c *Client) ChangeFiles(ctx context.Context, runner string, changes ...execution.FileChange) error {
	_, err := c.call(ctx, http.MethodPost, []string{"runner", runner, "files"}, nil, changes, nil)
	return err
}

// ReadFile opens a file, or with Offset or Length a part of it. Close it. Errors: NotFound, Forbidden, Gone.
func (c *Client) ReadFile(ctx context.Context, runner string, r execution.FileRequest) (io.ReadCloser, error) {
	headers := map[string]string{}
	switch {
	case r.Length > 0:
		headers["Range"] = fmt.Sprintf("bytes=%d-%d", r.Offset, r.Offset+r.Length-1)
	case r.Offset > 0:
		headers["Range"] = fmt.Sprintf("bytes=%d-", r.Offset)
	}
	res, err := c.do(ctx, request{
		method: http.MethodGet, path: []string{"runner", runner, "file"}, query: pathQuery(r.Path, r.Privileged), headers: headers,
	})
	if err != nil {
		return nil, err
	}
	if len(headers) > 0 && res.StatusCode == http.StatusOK { // it has no parts, as in /proc
		return partOf(ctx, res.Body, r)
	}
	return res.Body, nil
}

// partOf returns the part of a whole body that r asks for.
func partOf(ctx context.Context, body io.ReadCloser, r execution.FileRequest) (io.ReadCloser, error) {
	if _, err := io.CopyN(io.Discard, body, r.Offset); err != nil && !errors.Is(err, io.EOF) {
		_ = body.Close()
		return nil, broken(ctx, "reading the file", err)
	}
	part := io.Reader(body)
	if r.Length > 0 {
		part = io.LimitReader(body, r.Length)
	}
	return struct {
		io.Reader
		io.Closer
	}{part, body}, nil
}

// WriteFile replaces a file with what r yields, atomically; change says its path, mode and owner. Errors: Invalid,
// Forbidden, Gone.
func (c *Client) WriteFile(ctx context.Context, runner string, change execution.FileChange, r io.Reader) error {
	query := pathQuery(change.Path, false)
	if change.Mode != 0 {
		query.Set("mode", strconv.FormatUint(uint64(change.Mode), 8))
	}
	if change.Owner != "" {
		query.Set("owner", change.Owner)
	}
	return c.send(ctx, request{method: http.MethodPut, path: []string{"runner", runner, "file"}, query: query, body: r})
}

// Archive reads a directory as tar. Close it. Errors: NotFound, Forbidden, Gone.
func (c *Client) Archive(ctx context.Context, runner string, r execution.FileRequest) (io.ReadCloser, error) {
	return c.open(ctx, request{
		method: http.MethodGet, path: []string{"runner", runner, "archive"}, query: pathQuery(r.Path, r.Privileged),
	})
}

// Extract unpacks a tar into a directory. Errors: Invalid, Forbidden, Gone.
func (c *Client) Extract(ctx context.Context, runner string, r execution.FileRequest, tar io.Reader) error {
	return c.send(ctx, request{
		method: http.MethodPut, path: []string{"runner", runner, "archive"}, query: pathQuery(r.Path, r.Privileged), body: tar,
	})
}

func (c *Client) open(ctx context.Context, r request) (io.ReadCloser, error) {
	res, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

func (c *Client) send(ctx context.Context, r request) error {
	res, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
