package artifact

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// objects are a bucket's; pages have two keys.
type objects map[string]string

func (o objects) page(prefix, from string) (keys []string, next string) {
	for k := range o {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	start, _ := strconv.Atoi(from)
	if strings.HasPrefix(prefix, "endless/") {
		return nil, strconv.Itoa(start + 1)
	}
	keys = keys[min(start, len(keys)):]
	if len(keys) > 2 {
		return keys[:2], strconv.Itoa(start + 2)
	}
	return keys, ""
}

// testKeys are those of the private bucket.
var testKeys = aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret/with+signs", SessionToken: "session"} // constant

// amazonEmulator serves the bucket "public" to all, and "private" to requests with testKeys' signature. /jump leads elsewhere.
func amazonEmulator(t *testing.T, o objects) *httptest.Server {
	refuse := func(w http.ResponseWriter, status int, code, message string) {
		w.WriteHeader(status)
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName       xml.Name `xml:"Error"`
			Code, Message string
		}{Code: code, Message: message})
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case name == "jump":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/iam", http.StatusTemporaryRedirect)
			return
		case name == "private" && !signed(t, r):
			refuse(w, http.StatusForbidden, "SignatureDoesNotMatch", "The signature does not match.")
			return
		case name != "private" && name != "public":
			refuse(w, http.StatusNotFound, "NoSuchBucket", "The bucket does not exist.")
			return
		}
		if key == "" {
			var out struct {
				XMLName               xml.Name `xml:"ListBucketResult"`
				Contents              []struct{ Key string }
				NextContinuationToken string `xml:",omitempty"`
			}
			var keys []string
			keys, out.NextContinuationToken = o.page(r.URL.Query().Get("prefix"), r.URL.Query().Get("continuation-token"))
			for _, k := range keys {
				out.Contents = append(out.Contents, struct{ Key string }{k})
			}
			_ = xml.NewEncoder(w).Encode(out)
			return
		}
		content, ok := o[key]
		if !ok {
			refuse(w, http.StatusNotFound, "NoSuchKey", "The key does not exist.")
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(s.Close)
	return s
}

// signed reports whether the request has testKeys' signature, which is made anew of what came over the wire.
func signed(t *testing.T, r *http.Request) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Host+r.URL.RequestURI(), nil)
	require.NoError(t, err)
	again.Header.Set("X-Amz-Content-Sha256", r.Header.Get("X-Amz-Content-Sha256"))
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	require.NoError(t, signer.SignHTTP(t.Context(), testKeys, again, emptyHash, "s3", "eu-west-1", at))
	return again.Header.Get("Authorization") == r.Header.Get("Authorization") && r.Header.Get("X-Amz-Security-Token") == testKeys.SessionToken
}

// googleEmulator serves the bucket "public" to all, and "private" to who has the token.
func googleEmulator(t *testing.T, o objects) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/storage/v1/b/"), "/")
		if name != "public" && r.Header.Get("Authorization") != "Bearer token" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": {"message": "Anonymous caller does not have access."}}`)
			return
		}
		if path == "o" {
			var out struct {
				Items         []struct{ Name string } `json:"items"`
				NextPageToken string                  `json:"nextPageToken,omitempty"`
			}
			var keys []string
			keys, out.NextPageToken = o.page(r.URL.Query().Get("prefix"), r.URL.Query().Get("pageToken"))
			for _, k := range keys {
				out.Items = append(out.Items, struct{ Name string }{k})
			}
			_ = json.NewEncoder(w).Encode(out)
			return
		}
		key, err := url.PathUnescape(strings.TrimPrefix(path, "o/"))
		content, ok := o[key]
		if err != nil || !ok || r.URL.Query().Get("alt") != "media" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	o := objects{
		"a.txt": "hello", "dir/one": "1", "dir/sub/two words+": "2", "dir/three": "3", "dir/": "", "directory": "x",
		"x.tar.gz": string(tarball(t)), "evil/../../x": "x", "large/1": strings.Repeat("x", 600<<10), "large/2": strings.Repeat("x", 600<<10),
	}
	amazon, google := amazonEmulator(t, o).URL, googleEmulator(t, o).URL
	keys := map[string]string{
		"aws_access_key_id": testKeys.AccessKeyID, "aws_access_key_secret": testKeys.SecretAccessKey, "aws_access_token": testKeys.SessionToken,
		"region": "eu-west-1",
	}
	folder := map[string]string{"local/one": "1", "local/sub/two words+": "2", "local/three": "3"}
	for name, at := range map[string]struct {
		public, private  string
		options, headers map[string]string
	}{
		"s3": {"s3::" + amazon + "/public/", "s3::" + amazon + "/private/", keys, nil},
		"gcs": {
			"gcs::" + google + "/storage/v1/public/", "gcs::" + google + "/storage/v1/private/", nil,
			map[string]string{"Authorization": "Bearer token"},
		},
	} {
		for _, c := range []fetched{
			{name: "object", artifact: Request{Source: at.public + "a.txt"}, want: map[string]string{"local/a.txt": "hello"}},
			{name: "to a file", artifact: Request{Source: at.public + "a.txt", Mode: "file", Path: "f"}, want: map[string]string{"f": "hello"}},
			{name: "folder", artifact: Request{Source: at.public + "dir"}, want: folder},
			{name: "folder with a slash", artifact: Request{Source: at.public + "dir/", Mode: "dir"}, want: folder},
			{name: "with keys", artifact: Request{Source: at.private + "dir", Options: at.options, Headers: at.headers}, want: folder},
			{
				name: "a name to escape", artifact: Request{Source: at.private + "dir/sub/two%20words+", Options: at.options, Headers: at.headers},
				want: map[string]string{"local/two words+": "2"},
			},
			{name: "without keys", artifact: Request{Source: at.private + "a.txt"}, err: "bucket private answered 40", again: true},
			{name: "nothing", artifact: Request{Source: at.public + "none"}, err: "bucket public answered 404", again: true},
			{name: "no folder", artifact: Request{Source: at.public + "none", Mode: "dir"}, err: "the bucket has nothing in none", again: true},
			{name: "no file", artifact: Request{Source: at.public + "dir", Mode: "file"}, err: "answered 404", again: true},
			{
				name: "wrong sum", artifact: Request{Source: at.public + "a.txt", Options: map[string]string{"checksum": "md5:00"}},
				err: "checksum is",
			},
			{
				name: "sum of a folder", artifact: Request{Source: at.public + "dir/", Options: map[string]string{"checksum": "md5:00"}},
				err: "checksum is of a file",
			},
			{name: "leads out", artifact: Request{Source: at.public + "evil/"}, err: `object "evil/../../x" leads out of the folder`},
			{name: "too large together", artifact: Request{Source: at.public + "large"}, err: "it has more than"},
			{name: "a list without an end", artifact: Request{Source: at.public + "endless/"}, err: "the bucket's list has more than the 100"},
			{name: "archive", artifact: Request{Source: at.public + "x.tar.gz"}},
			{name: "no key", artifact: Request{Source: strings.TrimSuffix(at.public, "/") + "/"}, err: "names no object"},
		} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				t.Parallel()
				dir := place(t, &c.artifact)
				err := newFetcher(Timeouts{}).Fetch(t.Context(), c.artifact)
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
					require.Equal(t, c.again, recoverable(err), "%v", err)
					return
				}
				require.NoError(t, err)
				for path, want := range c.want {
					got, err := os.ReadFile(filepath.Join(dir, path))
					require.NoError(t, err)
					require.Equal(t, want, string(got))
				}
			})
		}
	}
}

// A bucket leads nobody to where only this machine can reach.
func TestBucketRedirectsToMetadata(t *testing.T) {
	t.Parallel()
	r := Request{Source: "s3::" + amazonEmulator(t, nil).URL + "/jump/a", Mode: "file"}
	place(t, &r)
	err := newFetcher(Timeouts{}).Fetch(t.Context(), r)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.ErrorContains(t, err, "169.254.169.254 is a link-local address")
	require.False(t, recoverable(err))
}

// elsewhere sends requests to the clouds' hosts to an emulator, and notes what they were.
type elsewhere struct {
	to   http.Handler
	seen *[]*http.Request
}

// RoundTrip implements http.RoundTripper.
func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	*e.seen = append(*e.seen, r)
	w := httptest.NewRecorder()
	e.to.ServeHTTP(w, r)
	return w.Result(), nil
}

// The node's own rights go to the clouds' own hosts, where the operator allows it. A bucket in another region is asked there.
func TestNodesOwnRights(t *testing.T) {
	t.Parallel()
	region := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Host, ".amazonaws.com") && !strings.Contains(r.URL.Host, "eu-north-1") &&
			!strings.Contains(r.URL.Host, "execute-api") {
			w.Header().Set("X-Amz-Bucket-Region", "eu-north-1")
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	for source, want := range map[string]struct {
		last, auth, hint string
	}{
		"s3::https://s3.amazonaws.com/b/a": {
			"https://b.s3.eu-north-1.amazonaws.com/a", "/eu-north-1/s3/aws4_request", "client.artifact.cloud_credentials",
		},
		"s3://b.c/a": {
			"https://s3.eu-north-1.amazonaws.com/b.c/a", "/eu-north-1/s3/aws4_request", "client.artifact.cloud_credentials",
		},
		"s3::https://example.org/b/a": {"https://example.org/b/a", "", "give the options aws_access_key_id and aws_access_key_secret"},
		"s3::http://b.s3.eu-north-1.amazonaws.com/a": {
			"http://b.s3.eu-north-1.amazonaws.com/a", "", "give the options aws_access_key_id and aws_access_key_secret",
		},
		// Programs of anybody have such names.
		"s3::https://x.execute-api.us-east-1.amazonaws.com/b/a": {
			"https://x.execute-api.us-east-1.amazonaws.com/b/a", "", "give the options aws_access_key_id and aws_access_key_secret",
		},
		"s3::https://s3.x.execute-api.us-east-1.amazonaws.com/b/a?region=eu-north-1": {
			"https://s3.x.execute-api.us-east-1.amazonaws.com/b/a", "", "give the options aws_access_key_id and aws_access_key_secret",
		},
		"gs://b/a/b": {"https://storage.googleapis.com/storage/v1/b/b/o/a%2Fb?alt=media", "Bearer token", "client.artifact.cloud_credentials"},
		"gcs::https://example.org/storage/v1/b/a": {"https://example.org/storage/v1/b/b/o/a?alt=media", "", "403"},
	} {
		for _, own := range []bool{true, false} {
			var seen []*http.Request
			f := newFetcher(Timeouts{}, func(c *Config) {
				c.HTTP = &http.Client{Transport: elsewhere{region, &seen}}
				if own {
					c.Cloud.AWS = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return testKeys, nil })
					c.Cloud.Google = func(context.Context) (string, error) { return "token", nil }
				}
			})
			r := Request{Source: source, Mode: "file"}
			place(t, &r)
			r.Path = "f"
			err := f.Fetch(t.Context(), r)
			last := seen[len(seen)-1]
			require.Equal(t, want.last, last.URL.String())
			auth := last.Header.Get("Authorization")
			if own && want.auth != "" {
				require.NoError(t, err, source)
				require.Contains(t, auth, want.auth)
				continue
			}
			require.Empty(t, auth, source)
			require.ErrorContains(t, err, want.hint, source)
		}
	}
}

// Where the node's rights are for some buckets, the others are asked as anybody asks.
func TestBucketsOfTheNode(t *testing.T) {
	t.Parallel()
	anybody := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	for source, as := range map[string]bool{
		"s3://team-a/x": true, "s3://team-b/x": false, "s3::https://team-a.s3.eu-north-1.amazonaws.com/x": true,
		"s3::https://team-b.s3.eu-north-1.amazonaws.com/x": false, "gs://open/x": true, "gs://closed/x": false, "gs://team-a.evil/x": false,
		"gcs::https://www.googleapis.com/storage/v1/closed/x": false,
	} {
		var seen []*http.Request
		f := newFetcher(Timeouts{}, func(c *Config) {
			c.HTTP = &http.Client{Transport: elsewhere{anybody, &seen}}
			c.Cloud.AWS = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return testKeys, nil })
			c.Cloud.Google = func(context.Context) (string, error) { return "token", nil }
			c.Cloud.Buckets = []string{"team-a", "op*n"}
		})
		r := Request{Source: source, Mode: "file"}
		place(t, &r)
		r.Path = "f"
		err := f.Fetch(t.Context(), r)
		require.NotEmpty(t, seen, source)
		for _, request := range seen {
			require.Equal(t, as, request.Header.Get("Authorization") != "", source)
		}
		if as {
			require.NoError(t, err, source)
		} else {
			require.ErrorContains(t, err, "cloud_buckets", source)
		}
	}
}

func TestTokensOfGooglesMachines(t *testing.T) {
	t.Parallel()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.Header.Get("Metadata-Flavor") != "Google" || asked == 2 {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"access_token": "t", "expires_in": `+strconv.Itoa(3600*(asked-1))+`}`)
	}))
	t.Cleanup(s.Close)
	g := &GoogleNode{At: s.URL, Clock: clock.Wall{}}
	token, err := g.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "t", token)
	_, err = g.Token(t.Context())
	require.ErrorContains(t, err, "404", "the first one had expired")
	for range 2 {
		_, err = g.Token(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 3, asked, "the last one is good for an hour")
}
