package artifact

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/drover-project/drover"
)

// s3 is a bucket of Amazon S3, or of a service that speaks its protocol.
type s3 struct {
	f       *Fetcher
	base    url.URL // the bucket
	name    string
	region  string
	version string
	headers map[string]string
	keys    aws.CredentialsProvider // nil: nobody's
	own     bool                    // the node's own are missing, or not for this bucket
}

// amazonDomains are those of Amazon's own services.
var amazonDomains = []string{".amazonaws.com", ".amazonaws.com.cn"} // constant

func amazon(host string) bool {
	return slices.ContainsFunc(amazonDomains, func(d string) bool { return strings.HasSuffix(strings.ToLower(host), d) })
}

// s3 reads where the bucket is. Errors: Invalid.
func (f *Fetcher) s3(src *source, headers map[string]string) (bucket, string, error) {
	b := &s3{f: f, base: *src.url, version: src.options["version"], region: src.options["region"], headers: headers}
	b.base.RawPath, b.base.User = "", nil
	key := strings.TrimPrefix(src.url.Path, "/")
	host := strings.ToLower(src.url.Hostname())
	switch {
	case src.url.Scheme == "s3":
		b.region = cmp.Or(b.region, "us-east-1")
		b.name = src.url.Host
		b.base = *b.at(b.region)
	case amazon(host):
		name, region, _ := amazonHost(host)
		b.region = cmp.Or(b.region, region, "us-east-1")
		if b.name = name; name == "" {
			b.name, key, _ = strings.Cut(key, "/")
			b.base.Path = "/" + b.name
		} else {
			b.base.Path = ""
		}
	default:
		b.region = cmp.Or(b.region, "us-east-1")
		b.name, key, _ = strings.Cut(key, "/")
		b.base.Path = "/" + b.name
	}
	if b.name == "" {
		return nil, "", drover.Errorf(drover.Invalid, "the source names no bucket")
	}
	if strings.ContainsAny(b.region, "/.:@?#") {
		return nil, "", drover.Errorf(drover.Invalid, "option region: %q is none", b.region)
	}
	return b, key, b.identify(src)
}

// identify says whose keys sign the requests: those of the options, the node's own for S3's own hosts, or nobody's. Amazon has names for
// its customers' programs, too (execute-api, compute), which would be told the node's key id and session.
func (b *s3) identify(src *source) error {
	id, secret := src.options["aws_access_key_id"], src.options["aws_access_key_secret"]
	if (id == "") != (secret == "") {
		return drover.Errorf(drover.Invalid, "options aws_access_key_id and aws_access_key_secret: both or none")
	}
	if id != "" {
		keys := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: src.options["aws_access_token"]}
		b.keys = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })
		return nil
	}
	if _, _, storage := amazonHost(strings.ToLower(b.base.Hostname())); storage && amazon(b.base.Hostname()) && b.base.Scheme == "https" {
		if b.own = b.f.cfg.Cloud.AWS == nil || !b.f.cfg.Cloud.opens(b.name); !b.own {
			b.keys = b.f.cfg.Cloud.AWS
		}
	}
	return nil
}

// amazonHost takes a host apart: [BUCKET.]s3[.dualstack][.REGION][.vpce] or [BUCKET.]s3-REGION, and the domain. storage is false for
// others.
func amazonHost(host string) (name, region string, storage bool) {
	for _, d := range amazonDomains {
		host = strings.TrimSuffix(host, d)
	}
	labels := strings.Split(host, ".")
	for i := len(labels) - 1; i >= 0; i-- {
		if l := labels[i]; l == "s3" || strings.HasPrefix(l, "s3-") {
			after := strings.TrimSuffix(strings.TrimPrefix(strings.Join(labels[i+1:], "."), "dualstack."), ".vpce")
			if region, old := strings.CutPrefix(l, "s3-"); old && after == "" {
				after = region
			}
			return strings.Join(labels[:i], "."), after, !strings.Contains(after, ".")
		}
	}
	return "", "", false
}

// at is the bucket's address in a region of Amazon's.
func (b *s3) at(region string) *url.URL {
	domain := amazonDomains[0]
	if strings.HasPrefix(region, "cn-") {
		domain = amazonDomains[1]
	}
	if strings.Contains(b.name, ".") { // no certificate has such names
		return &url.URL{Scheme: "https", Host: "s3." + region + domain, Path: "/" + b.name}
	}
	return &url.URL{Scheme: "https", Host: b.name + ".s3." + region + domain}
}

// get implements bucket.
func (b *s3) get(ctx context.Context, key string) (io.ReadCloser, error) {
	query := url.Values{}
	if b.version != "" {
		query.Set("versionId", b.version)
	}
	res, err := b.ask(ctx, "/"+key, query)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// list implements bucket.
func (b *s3) list(ctx context.Context, prefix, page string) ([]string, string, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	if page != "" {
		query.Set("continuation-token", page)
	}
	res, err := b.ask(ctx, "/", query)
	if err != nil {
		return nil, "", err
	}
	text, err := answered(res)
	if err != nil {
		return nil, "", err
	}
	var out struct {
		Contents              []struct{ Key string }
		NextContinuationToken string
	}
	if err := xml.Unmarshal(text, &out); err != nil {
		return nil, "", fmt.Errorf("reading the bucket's list: %w", err)
	}
	keys := make([]string, len(out.Contents))
	for i, c := range out.Contents {
		keys[i] = c.Key
	}
	return keys, out.NextContinuationToken, nil
}

// ask makes a request, and another one where the bucket says that it is in another region.
func (b *s3) ask(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	for again := false; ; again = true {
		res, err := b.request(ctx, path, query)
		if err != nil || res.StatusCode == http.StatusOK {
			return res, err
		}
		region := res.Header.Get("X-Amz-Bucket-Region")
		if again || region == "" || region == b.region || strings.ContainsAny(region, "/.:@?#") || !amazon(b.base.Hostname()) {
			return nil, b.refusal(res)
		}
		_ = res.Body.Close()
		b.region, b.base = region, *b.at(region)
	}
}

// emptyHash is the SHA-256 of nothing, which is what requests carry.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (b *s3) request(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	at := b.base
	at.Path += path
	at.RawPath, at.RawQuery = s3Escape(at.Path), query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "source: %w", err)
	}
	for k, v := range b.headers {
		req.Header.Set(k, v)
	}
	if b.keys != nil {
		key, err := b.keys.Retrieve(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding keys for the bucket: %w", err)
		}
		req.Header.Set("X-Amz-Content-Sha256", emptyHash)
		signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		if err := signer.SignHTTP(ctx, key, req, emptyHash, "s3", b.region, b.f.cfg.Clock.Now()); err != nil {
			return nil, fmt.Errorf("signing the request: %w", err)
		}
	}
	return b.f.cfg.HTTP.Do(req)
}

// s3Escape escapes a path as signatures are made of it: all but letters, digits, -._~ and slashes.
func s3Escape(path string) string {
	var out strings.Builder
	for _, c := range []byte(path) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// refusal says what the bucket answered.
func (b *s3) refusal(res *http.Response) error {
	text, _ := answered(res) // the status says it, too
	var said struct{ Code, Message string }
	_ = xml.Unmarshal(text, &said)
	code := drover.Unavailable
	if res.StatusCode == http.StatusNotFound && said.Code != "NoSuchBucket" {
		code = drover.NotFound
	}
	hint := ""
	if b.keys == nil && (res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusUnauthorized) {
		hint = "; it was asked without keys: give the options aws_access_key_id and aws_access_key_secret"
		if b.own {
			hint += ", or have the node's agent set client.artifact.cloud_credentials, and name the bucket in cloud_buckets if that is set"
		}
	}
	parts := slices.DeleteFunc([]string{said.Code, plain(said.Message)}, func(s string) bool { return s == "" })
	words := strings.TrimRight(strings.Join(parts, ": "), ". ")
	if words != "" {
		words = " (" + words + ")"
	}
	return drover.Errorf(code, "bucket %s answered %s%s%s", b.name, res.Status, words, hint)
}

// plain is a text of somebody else on one short line.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	return s[:min(len(s), 300)]
}
