package registry

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/registry/registrytest"
	"github.com/drover-project/drover/internal/signature"
)

// image is an image like no other.
func image(t *testing.T) v1.Image {
	t.Helper()
	img, err := random.Image(100, 1)
	require.NoError(t, err)
	return img
}

// index is an index of an image for this machine and of one for another.
func index(t *testing.T, own v1.Image) v1.ImageIndex {
	t.Helper()
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	return mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: image(t), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: other}}},
		mutate.IndexAddendum{Add: own, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
}

func newClient() *Client { return New(Config{Clock: clock.Wall{}}) }

func keysOf(t *testing.T, signers ...*registrytest.Signer) []signature.Key {
	t.Helper()
	texts := make([]string, len(signers))
	for i, s := range signers {
		texts[i] = s.PEM
	}
	keys, err := signature.ParseKeys(texts)
	require.NoError(t, err)
	return keys
}

func TestResolve(t *testing.T) {
	t.Parallel()
	r := registrytest.New(t, "", "")
	c := newClient()
	img := image(t)
	ref, digest := r.Push(t, "app:1", img)
	got, err := c.Resolve(t.Context(), ref, Account{})
	require.NoError(t, err)
	require.Equal(t, digest.String(), got)

	// Of an index it is the index's: each machine takes its own image out of it.
	multi, all := r.Push(t, "multi:1", index(t, image(t)))
	got, err = c.Resolve(t.Context(), multi, Account{})
	require.NoError(t, err)
	require.Equal(t, all.String(), got)

	// A registry that does not know HEAD.
	r.Misbehave(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return q.Method == http.MethodHead
	})
	got, err = c.Resolve(t.Context(), ref, Account{})
	require.NoError(t, err)
	require.Equal(t, digest.String(), got)
	r.Behave()

	asked := r.Asked.Load()
	got, err = c.Resolve(t.Context(), ref+"@"+digest.String(), Account{})
	require.NoError(t, err)
	require.Equal(t, digest.String(), got)
	require.Equal(t, asked, r.Asked.Load(), "a digest is one")

	_, err = c.Resolve(t.Context(), r.Host+"/none:1", Account{})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, err = c.Resolve(t.Context(), "A B", Account{})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	r.Stop()
	_, err = c.Resolve(t.Context(), ref, Account{})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "image "+ref+": reaching the registry")
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	r := registrytest.New(t, "me", "secret")
	_, err := newClient().Resolve(t.Context(), r.Host+"/app:1", Account{Username: "me", Password: "wrong"})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.NotContains(t, err.Error(), "wrong\"")
	_, err = newClient().Resolve(t.Context(), r.Host+"/app:1", Account{Username: "me", Password: "secret"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "it may ask")
}

func TestVerify(t *testing.T) {
	t.Parallel()
	r := registrytest.New(t, "", "")
	mine, yours, nobodys := registrytest.NewSigner(t, ""), registrytest.NewSigner(t, ""), registrytest.NewSigner(t, "")
	ref, digest := r.Push(t, "app:1", image(t))
	r.Sign(t, mine, "app", digest)
	want := Signed{Ref: r.Host + "/app@" + digest.String(), Key: keysOf(t, mine)[0].ID}
	for _, name := range []string{ref, want.Ref, ref + "@" + digest.String()} {
		got, err := newClient().Verify(t.Context(), name, Account{}, keysOf(t, yours, mine), false)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	_, err := newClient().Verify(t.Context(), ref, Account{}, keysOf(t, nobodys), false)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.ErrorContains(t, err, "image "+ref+": it must be signed by one of the keys "+keysOf(t, nobodys)[0].ID)
	require.ErrorContains(t, err, "none of the 1 signatures in sha256-"+digest.Hex+".sig is of these keys")

	// What was found is not asked for again, unless for another key, or anew.
	kept := Config{Clock: clock.Wall{}, File: filepath.Join(t.TempDir(), "new", "signed.json")}
	c := New(kept)
	_, err = c.Verify(t.Context(), ref, Account{}, keysOf(t, mine), false)
	require.NoError(t, err)
	asked := r.Asked.Load()
	got, err := c.Verify(t.Context(), ref, Account{}, keysOf(t, yours, mine), false)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, asked, r.Asked.Load())
	_, err = c.Verify(t.Context(), ref, Account{}, keysOf(t, yours), false)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "a key that was taken back signs no more")
	next, moved := r.Push(t, "app:1", image(t))
	require.Equal(t, ref, next)
	_, err = c.Verify(t.Context(), ref, Account{}, keysOf(t, mine), true)
	require.ErrorContains(t, err, "there is no sha256-"+moved.Hex+".sig beside it")
	r.Stop()
	_, err = newClient().Verify(t.Context(), ref, Account{}, keysOf(t, mine), false)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	got, err = New(kept).Verify(t.Context(), ref, Account{}, keysOf(t, mine), false)
	require.NoError(t, err, "the next client knows it, too")
	require.Equal(t, want, got)
	_, err = New(kept).Verify(t.Context(), ref, Account{}, keysOf(t, yours), false)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	for _, damaged := range []string{"", "{", "null", `{"x":7}`} {
		require.NoError(t, os.WriteFile(kept.File, []byte(damaged), 0o600))
		_, err = New(kept).Verify(t.Context(), ref, Account{}, keysOf(t, mine), false)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), damaged)
	}
}

// TestIndexes: either the index is signed, or the image for this machine that is in it. That one for another machine is says nothing.
func TestIndexes(t *testing.T) {
	t.Parallel()
	r, s := registrytest.New(t, "", ""), registrytest.NewSigner(t, "")
	own := image(t)
	all := index(t, own)
	ref, digest := r.Push(t, "app:1", all)
	list, err := all.IndexManifest()
	require.NoError(t, err)
	r.Sign(t, s, "app", list.Manifests[0].Digest)
	_, err = newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), false)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))

	child, err := own.Digest()
	require.NoError(t, err)
	r.Sign(t, s, "app", child)
	got, err := newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), false)
	require.NoError(t, err)
	require.Equal(t, r.Host+"/app@"+child.String(), got.Ref, "nothing else of the index is pulled")

	r.Sign(t, s, "app", digest)
	got, err = newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), false)
	require.NoError(t, err)
	require.Equal(t, r.Host+"/app@"+digest.String(), got.Ref)

	// That an index is signed says nothing of an image in it that is named by its own digest: cosign signs it with --recursive.
	alone := image(t)
	_, whole := r.Push(t, "other:1", index(t, alone))
	r.Sign(t, s, "other", whole)
	hash, err := alone.Digest()
	require.NoError(t, err)
	_, err = newClient().Verify(t.Context(), r.Host+"/other@"+hash.String(), Account{}, keysOf(t, s), false)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
}

// forgery is what lies beside an image in place of its signature.
type forgery struct {
	layers func(repository, digest string) []registrytest.Layer
	want   string // why it is refused; "" = it is good
}

const kind = "cosign container image signature"

// noDigest is no image's.
var noDigest = "sha256:" + strings.Repeat("0", 64) // a constant

func payload(repository, digest, kind string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":%q}}`,
		repository, digest, kind)
}

// otherSignatures are good ones of something else.
func otherSignatures(t *testing.T, s, stranger *registrytest.Signer) map[string]forgery {
	return map[string]forgery{
		"no signature": {func(string, string) []registrytest.Layer { return nil }, "none of the 0 signatures"},
		"another image": {func(repo, _ string) []registrytest.Layer {
			p := registrytest.Payload(repo, noDigest)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "it is of another image"},
		"another repository": {func(repo, d string) []registrytest.Layer {
			p := registrytest.Payload(repo+"2", d)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "it is of an image in another repository"},
		"docker's hub": {func(_, d string) []registrytest.Layer {
			p := registrytest.Payload("app", d)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "it is of an image in another repository"},
		"another payload": {func(repo, d string) []registrytest.Layer {
			return []registrytest.Layer{{Payload: registrytest.Payload(repo, d), Signature: s.Sign(t, registrytest.Payload(repo, noDigest))}}
		}, "none of the 1 signatures"},
		"a stranger's, then a good one": {func(repo, d string) []registrytest.Layer {
			p := registrytest.Payload(repo, d)
			theirs := append(registrytest.Payload(repo, d), '\n')
			return []registrytest.Layer{{Payload: theirs, Signature: stranger.Sign(t, theirs)}, {Payload: p, Signature: s.Sign(t, p)}}
		}, ""},
		"a good one of another image, then a good one": {func(repo, d string) []registrytest.Layer {
			p, q := registrytest.Payload(repo, d), registrytest.Payload(repo, noDigest)
			return []registrytest.Layer{{Payload: q, Signature: s.Sign(t, q)}, {Payload: p, Signature: s.Sign(t, p)}}
		}, ""},
		"a tag in the name": {func(repo, d string) []registrytest.Layer {
			p := registrytest.Payload(repo+":1", d)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, ""},
		"another type": {func(repo, d string) []registrytest.Layer {
			p := payload(repo, d, "atomic container signature")
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "not a \"" + kind},
	}
}

// oddDocuments are signed by the key, and mean more than one thing, or nothing.
func oddDocuments(t *testing.T, s *registrytest.Signer) map[string]forgery {
	return map[string]forgery{
		"a digest twice": {func(repo, d string) []registrytest.Layer {
			p := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q,`+
				`"docker-manifest-digest":%q},"type":%q}}`, repo, noDigest, d, kind)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, `the key "docker-manifest-digest" stands twice`},
		"critical twice": {func(repo, d string) []registrytest.Layer {
			p := append(payload(repo, noDigest, kind)[:len(payload(repo, noDigest, kind))-1], payload(repo, d, kind)[1:]...)
			p = []byte(strings.Replace(string(p), `}"critical"`, `},"critical"`, 1))
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, `the key "critical" stands twice`},
		"an escaped key twice": {func(repo, d string) []registrytest.Layer {
			p := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-diges\u0074":%q,`+
				`"docker-manifest-digest":%q},"type":%q}}`, repo, noDigest, d, kind)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "stands twice"},
		"another case": {func(repo, d string) []registrytest.Layer {
			p := []byte(strings.Replace(string(payload(repo, d, kind)), "docker-manifest-digest", "Docker-Manifest-Digest", 1))
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "docker-manifest-digest is missing"},
		"no JSON": {func(string, string) []registrytest.Layer {
			return []registrytest.Layer{{Payload: []byte("hello"), Signature: s.Sign(t, []byte("hello"))}}
		}, "no simple signing document"},
		"deep JSON": {func(string, string) []registrytest.Layer {
			p := []byte(strings.Repeat("[", 1000))
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "too deep"},
		"something behind it": {func(repo, d string) []registrytest.Layer {
			p := append(registrytest.Payload(repo, d), "{}"...)
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "something follows it"},
		"a huge payload": {func(string, string) []registrytest.Layer {
			p := []byte(strings.Repeat(" ", maxPayload+1))
			return []registrytest.Layer{{Payload: p, Signature: s.Sign(t, p)}}
		}, "at most 65536 are read"},
		"many signatures": {func(repo, d string) (all []registrytest.Layer) {
			for i := range maxSignatures + 1 {
				all = append(all, registrytest.Layer{Payload: fmt.Append(nil, i), Signature: "AAAA"})
			}
			return all
		}, "at most 64 are looked at"},
		"a huge manifest": {func(string, string) []registrytest.Layer {
			return []registrytest.Layer{{Payload: []byte("x"), Signature: "AAAA", Annotate: map[string]string{"x": strings.Repeat("x", maxAnswer)}}}
		}, "larger than 4194304 bytes"},
	}
}

// TestForgeries: what somebody can do who may push to the repository, or who is the registry, but has no key; or who has one, and means
// something else.
func TestForgeries(t *testing.T) {
	t.Parallel()
	s, stranger := registrytest.NewSigner(t, ""), registrytest.NewSigner(t, "")
	all := otherSignatures(t, s, stranger)
	maps.Copy(all, oddDocuments(t, s))
	for what, c := range all {
		r := registrytest.New(t, "", "")
		ref, digest := r.Push(t, "app:1", image(t))
		r.Attach(t, "app", digest, c.layers(r.Host+"/app", digest.String())...)
		_, err := newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), false)
		if c.want == "" {
			require.NoError(t, err, what)
			continue
		}
		require.ErrorContains(t, err, c.want, what)
	}
}

// TestARegistryThatSwaps: each answer about the tag is another image; what is verified has the digest that comes out.
func TestARegistryThatSwaps(t *testing.T) {
	t.Parallel()
	r, s := registrytest.New(t, "", ""), registrytest.NewSigner(t, "")
	ref, good := r.Push(t, "app:1", image(t))
	_, evil := r.Push(t, "app:2", image(t))
	r.Sign(t, s, "app", good)
	var asked atomic.Int64
	r.Misbehave(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.HasSuffix(q.URL.Path, "/manifests/1") && asked.Add(1)%2 == 0 {
			q.URL.Path = strings.TrimSuffix(q.URL.Path, "1") + "2"
		}
		return false
	})
	for i := range 4 {
		got, err := newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), true)
		if i%2 == 0 {
			require.NoError(t, err)
			require.Equal(t, r.Host+"/app@"+good.String(), got.Ref)
			continue
		}
		require.ErrorContains(t, err, "there is no sha256-"+evil.Hex+".sig")
	}
	// It answers with the good image's signature for the other's, and with another image under the good one's digest.
	r.Misbehave(func(_ http.ResponseWriter, q *http.Request) bool {
		q.URL.Path = strings.ReplaceAll(q.URL.Path, evil.Hex+".sig", good.Hex+".sig")
		return false
	})
	_, err := newClient().Verify(t.Context(), r.Host+"/app:2", Account{}, keysOf(t, s), false)
	require.ErrorContains(t, err, "it is of another image")
	r.Misbehave(func(_ http.ResponseWriter, q *http.Request) bool {
		q.URL.Path = strings.ReplaceAll(q.URL.Path, "/manifests/"+good.String(), "/manifests/"+evil.String())
		return false
	})
	_, err = newClient().Verify(t.Context(), r.Host+"/app@"+good.String(), Account{}, keysOf(t, s), false)
	require.Error(t, err)
}

// TestPayloadsComeFromTheirRepository: a manifest of signatures may name other addresses, which only this machine may reach.
func TestPayloadsComeFromTheirRepository(t *testing.T) {
	t.Parallel()
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(inside.Close)
	r, s := registrytest.New(t, "", ""), registrytest.NewSigner(t, "")
	ref, digest := r.Push(t, "app:1", image(t))
	p := registrytest.Payload(r.Host+"/app", digest.String())
	r.Attach(t, "app", digest, registrytest.Layer{Payload: p, Signature: s.Sign(t, p), URLs: []string{inside.URL}})
	r.Misbehave(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"errors":[{"code":"BLOB_UNKNOWN"}]}`)
			return true
		}
		return false
	})
	_, err := newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), false)
	require.Error(t, err)
	r.Misbehave(func(w http.ResponseWriter, q *http.Request) bool { // other bytes
		if strings.Contains(q.URL.Path, "/blobs/") {
			_, _ = w.Write(registrytest.Payload("x", "y"))
			return true
		}
		return false
	})
	_, err = newClient().Verify(t.Context(), ref, Account{}, keysOf(t, s), false)
	require.Error(t, err)
}
