package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover"
)

// gcs is a bucket of Google Cloud Storage, by its JSON interface.
type gcs struct {
	f          *Fetcher
	base       string // …/storage/v1/b/BUCKET
	name       string
	generation string
	headers    map[string]string
	token      func(context.Context) (string, error) // nil: nobody's
	own        bool                                  // the node's own is missing
}

func google(host string) bool {
	host = strings.ToLower(host)
	return host == "www.googleapis.com" || host == "storage.googleapis.com"
}

// gcs reads where the bucket is: https://HOST/storage/v1/BUCKET/KEY, or gs://BUCKET/KEY. Errors: Invalid.
func (f *Fetcher) gcs(src *source, headers map[string]string) (bucket, string, error) {
	b := &gcs{f: f, generation: src.options["generation"], headers: headers}
	at, key := "https://storage.googleapis.com", ""
	if src.url.Scheme == "gs" {
		b.name, key = src.url.Host, strings.TrimPrefix(src.url.Path, "/")
	} else {
		parts := strings.SplitN(strings.TrimPrefix(src.url.Path, "/"), "/", 4)
		if len(parts) < 4 || parts[0] != "storage" || parts[1] != "v1" {
			return nil, "", drover.Errorf(drover.Invalid,
				"source: want gcs::https://www.googleapis.com/storage/v1/BUCKET/OBJECT, or gs://BUCKET/OBJECT")
		}
		at, b.name, key = src.url.Scheme+"://"+src.url.Host, parts[2], parts[3]
	}
	if b.name == "" {
		return nil, "", drover.Errorf(drover.Invalid, "the source names no bucket")
	}
	b.base = at + "/storage/v1/b/" + url.PathEscape(b.name)
	// A token is good for all of the cloud: it goes to the cloud alone.
	if src.url.Scheme != "http" && (src.url.Scheme == "gs" || google(src.url.Host)) && headers["Authorization"] == "" {
		if b.own = f.cfg.Cloud.Google == nil || !f.cfg.Cloud.opens(b.name); !b.own {
			b.token = f.cfg.Cloud.Google
		}
	}
	return b, key, nil
}

// get implements bucket.
func (b *gcs) get(ctx context.Context, key string) (io.ReadCloser, error) {
	query := url.Values{"alt": {"media"}}
	if b.generation != "" {
		query.Set("generation", b.generation)
	}
	res, err := b.ask(ctx, "/o/"+url.PathEscape(key), query)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// list implements bucket.
func (b *gcs) list(ctx context.Context, prefix, page string) ([]string, string, error) {
	query := url.Values{"prefix": {prefix}, "fields": {"items(name),nextPageToken"}}
	if page != "" {
		query.Set("pageToken", page)
	}
	res, err := b.ask(ctx, "/o", query)
	if err != nil {
		return nil, "", err
	}
	text, err := answered(res)
	if err != nil {
		return nil, "", err
	}
	var out struct {
		Items         []struct{ Name string } `json:"items"`
		NextPageToken string                  `json:"nextPageToken"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, "", fmt.Errorf("reading the bucket's list: %w", err)
	}
	keys := make([]string, len(out.Items))
	for i, o := range out.Items {
		keys[i] = o.Name
	}
	return keys, out.NextPageToken, nil
}

func (b *gcs) ask(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "source: %w", err)
	}
	if b.token != nil {
		token, err := b.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding a token for the bucket: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range b.headers {
		req.Header.Set(k, v)
	}
	res, err := b.f.cfg.HTTP.Do(req)
	if err != nil || res.StatusCode == http.StatusOK {
		return res, err
	}
	text, _ := answered(res) // the status says it, too
	code, hint := drover.Unavailable, ""
	switch {
	case res.StatusCode == http.StatusNotFound:
		code = drover.NotFound
	case b.own && (res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusUnauthorized):
		hint = "; it was asked without a token: give the header Authorization, or have the node's agent set " +
			"client.artifact.cloud_credentials, and name the bucket in cloud_buckets if that is set"
	}
	var said struct {
		Error struct{ Message string } `json:"error"`
	}
	if json.Unmarshal(text, &said) == nil && said.Error.Message != "" {
		hint = " (" + strings.TrimRight(plain(said.Error.Message), ". ") + ")" + hint
	}
	return nil, drover.Errorf(code, "bucket %s answered %s%s", b.name, res.Status, hint)
}
