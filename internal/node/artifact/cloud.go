package artifact

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Cloud is who a node is in its cloud. What is nil is nobody.
type Cloud struct {
	AWS    aws.CredentialsProvider
	Google func(context.Context) (token string, err error)
	// Buckets are those that are asked as the node, by name, with * for any characters. Default: all.
	Buckets []string
}

// opens reports whether a bucket is asked as the node.
func (c *Cloud) opens(bucket string) bool {
	return len(c.Buckets) == 0 || slices.ContainsFunc(c.Buckets, func(pattern string) bool {
		fits, err := path.Match(pattern, bucket) // which was checked
		return err == nil && fits
	})
}

// GoogleNode gives the tokens of the service account of a machine of Google's, which its metadata service tells.
type GoogleNode struct {
	At    string // the service; default http://metadata.google.internal
	Clock clock.Clock

	mu    sync.Mutex // held while a token is fetched
	token string
	until time.Time
}

// Token returns a token that is good for a while. Errors: Unavailable.
func (g *GoogleNode) Token(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token != "" && g.Clock.Now().Before(g.until) {
		return g.token, nil
	}
	at := g.At
	if at == "" {
		at = "http://metadata.google.internal"
	}
	ctx, cancel := g.Clock.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/computeMetadata/v1/instance/service-accounts/default/token", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Metadata-Flavor", "Google")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine's
	res, err := client.Do(req)
	if err != nil {
		return "", drover.Errorf(drover.Unavailable, "asking the metadata service: %w", err)
	}
	defer res.Body.Close()
	var out struct {
		Token   string `json:"access_token"`
		Expires int64  `json:"expires_in"`
	}
	if res.StatusCode != http.StatusOK {
		return "", drover.Errorf(drover.Unavailable, "the metadata service answered %s", res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&out); err != nil || out.Token == "" {
		return "", drover.Errorf(drover.Unavailable, "the metadata service answered without a token: %v", err)
	}
	g.token, g.until = out.Token, g.Clock.Now().Add(time.Duration(min(max(out.Expires-120, 0), 1<<31))*time.Second)
	return g.token, nil
}
