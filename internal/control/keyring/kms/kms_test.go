package kms

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/keyring/kms/kmstest"
)

// hasty is a clock whose pauses pass at once.
type hasty struct {
	clock.Wall
	mu     sync.Mutex
	pauses []time.Duration
}

// Await implements clock.Cooperative.
func (h *hasty) Await(ctx context.Context, d time.Duration, _ ...<-chan struct{}) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pauses = append(h.pauses, d)
	return ctx.Err() == nil
}

// Go implements clock.Cooperative.
func (*hasty) Go(f func()) { go f() }

// fixture is a service and a wrapper of it.
type fixture struct {
	*Wrapper
	*kmstest.Service
	clock *hasty
	keyID string // of what it wraps
}

var secret = []byte(strings.Repeat("the root key, which is longer than RSA would take. ", 60))

func fixtures(t *testing.T) map[string]*fixture {
	t.Helper()
	all := map[string]*fixture{}
	add := func(name, keyID string, s *kmstest.Service, w *Wrapper, c *hasty, err error) {
		require.NoError(t, err)
		all[name] = &fixture{w, s, c, keyID}
	}
	c := &hasty{}
	amazon := kmstest.Amazon(t)
	add("aws", kmstest.KeyARN, amazon, NewAWS(AWS{
		Region: kmstest.Region, Key: kmstest.Alias, Endpoint: amazon.URL, Credentials: StaticAWS(kmstest.AccessKey, kmstest.SecretKey, "session"),
	}, Deps{Clock: c}), c, nil)
	for _, how := range []string{"google's machine", "google's account"} {
		g, c := kmstest.Google(t), &hasty{}
		cfg := Google{Project: "p", Region: "global", KeyRing: "r", CryptoKey: "k", Endpoint: g.URL, Metadata: g.Host()}
		if how == "google's account" {
			cfg.Credentials = g.Account
		}
		w, err := NewGoogle(cfg, Deps{Clock: c})
		add(how, kmstest.CryptoKey, g.Service, w, c, err)
	}
	for _, how := range []string{"azure's machine", "azure's application"} {
		s, c := kmstest.Azure(t), &hasty{}
		cfg := Azure{
			Vault: "Vault", Key: "drover", Endpoint: s.URL, Authority: s.URL, Tenant: "tenant", Metadata: strings.TrimPrefix(s.URL, "http://"),
		}
		if how == "azure's application" {
			cfg.Client, cfg.Secret = kmstest.ClientID, kmstest.ClientSecret
		}
		w, err := NewAzure(cfg, Deps{Clock: c})
		add(how, kmstest.KeyVersion, s, w, c, err)
	}
	return all
}

func TestServicesWrapAndUnwrap(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		id, text, err := f.Wrap(t.Context(), secret, "")
		require.NoError(t, err, name)
		require.Equal(t, f.keyID, id, name)
		require.NotContains(t, string(text), "the root key", name)
		plain, err := f.Unwrap(t.Context(), id, text)
		require.NoError(t, err, name)
		require.Equal(t, secret, plain, name)

		_, err = f.Unwrap(t.Context(), "another", text)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "%s: %v", name, err)
		for _, damaged := range []string{"", "{}", string(text[:len(text)-2]), `{"Key":"AAAA","Text":"AAAA"}`} {
			_, err = f.Unwrap(t.Context(), id, []byte(damaged))
			require.Error(t, err, "%s: %s", name, damaged)
		}
		var e envelope
		require.NoError(t, json.Unmarshal(text, &e))
		e.Text[20] ^= 1
		changed, err := json.Marshal(e)
		require.NoError(t, err)
		_, err = f.Unwrap(t.Context(), id, changed)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%s: %v", name, err)
	}
}

func TestAServiceThatThrottlesOrFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		id, text, err := f.Wrap(t.Context(), secret, "") // also fetches the token
		require.NoError(t, err)
		f.Fail(
			kmstest.Says(http.StatusBadRequest, `{"__type":"ThrottlingException","error":{"code":"x"}}`),
			kmstest.Says(http.StatusServiceUnavailable, "<html>"),
		)
		if name != "aws" {
			// Amazon's word is not theirs: 400 is final.
			_, err = f.Unwrap(t.Context(), id, text)
			require.Error(t, err)
		}
		f.clock.pauses = nil
		plain, err := f.Unwrap(t.Context(), id, text)
		require.NoError(t, err, name)
		require.Equal(t, secret, plain)
		require.Equal(t, firstPause, f.clock.pauses[0])
		require.IsIncreasing(t, append(f.clock.pauses, time.Hour))

		asked := f.Calls()
		for range tries {
			f.Fail(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "2")
				kmstest.Says(http.StatusTooManyRequests, "{}")(w, nil)
			})
		}
		_, err = f.Unwrap(t.Context(), id, text)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), name)
		require.ErrorContains(t, err, "429 Too Many Requests")
		require.Equal(t, asked+tries, f.Calls(), "it gives up")
		require.Equal(t, 2*time.Second, f.clock.pauses[len(f.clock.pauses)-1], "as the service asks")
	}
}

// TestAServiceThatLies: a root key that was wrapped for nothing would be noticed too late.
func TestAServiceThatLies(t *testing.T) {
	t.Parallel()
	lies := map[string]string{ // to wrap
		"aws":                 `{"KeyId":"` + kmstest.KeyARN + `","CiphertextBlob":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`,
		"google's machine":    `{"ciphertext":"AAAA","ciphertextCrc32c":"1","verifiedPlaintextCrc32c":true}`,
		"google's account":    `{"ciphertext":"AAAA","verifiedPlaintextCrc32c":false}`,
		"azure's machine":     `{"kid":"https://evil.example/keys/drover/1","value":"AAAA"}`,
		"azure's application": `{"kid":"` + kmstest.KeyVersion + `/../1","value":"AAAA"}`,
	}
	for name, f := range fixtures(t) {
		id, text, err := f.Wrap(t.Context(), secret, "")
		require.NoError(t, err)
		for _, lie := range []string{lies[name], "<html>", "{}", "", `{"KeyId":7}`, strings.Repeat("x", maxAnswer+1)} {
			f.Fail(kmstest.Says(http.StatusOK, lie))
			_, _, err = f.Wrap(t.Context(), secret, "")
			require.Error(t, err, "%s: %.100s", name, lie)
			require.NotContains(t, err.Error(), "xxxx")
			f.Fail(kmstest.Says(http.StatusOK, lie))
			_, err = f.Unwrap(t.Context(), id, text)
			require.Error(t, err, "%s: %.100s", name, lie)
		}
		// It answers with other bytes than it was given, in good form.
		f.Fail(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			switch zeros := strings.Repeat("A", 43); {
			case strings.HasPrefix(name, "aws"):
				_, _ = io.WriteString(w, `{"Plaintext":"`+zeros+`="}`)
			case strings.HasPrefix(name, "google"):
				_, _ = io.WriteString(w, `{"plaintext":"`+zeros+`=","plaintextCrc32c":"`+castagnoli(make([]byte, 32))+`"}`)
			default:
				_, _ = io.WriteString(w, `{"kid":"`+kmstest.KeyVersion+`","value":"`+zeros+`"}`)
			}
			_ = body
		})
		_, err = f.Unwrap(t.Context(), id, text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%s: %v", name, err)
	}
}

func TestAServiceThatHangsOrIsGone(t *testing.T) {
	t.Parallel()
	for name, f := range fixtures(t) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		f.Fail(kmstest.Hangs)
		_, _, err := f.Wrap(ctx, secret, "")
		cancel()
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%s: %v", name, err)
		f.Close()
		_, _, err = f.Wrap(t.Context(), secret, "")
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%s: %v", name, err)
	}
}

// once gives wrong credentials as long as nobody says that they have expired.
type once struct{ asked bool }

func (o *once) Invalidate() { o.asked = true }

func (o *once) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if !o.asked {
		return StaticAWS("AKIDEXPIRED", "old", "").Retrieve(ctx)
	}
	return StaticAWS(kmstest.AccessKey, kmstest.SecretKey, "").Retrieve(ctx)
}

func TestWhoIsRefused(t *testing.T) {
	t.Parallel()
	amazon := kmstest.Amazon(t)
	with := func(cfg AWS) *Wrapper { return NewAWS(cfg, Deps{Clock: &hasty{}}) }
	cfg := AWS{Region: kmstest.Region, Key: kmstest.Alias, Endpoint: amazon.URL, Credentials: StaticAWS(kmstest.AccessKey, "wrong-secret", "")}
	_, _, err := with(cfg).Wrap(t.Context(), secret, "")
	require.ErrorContains(t, err, "InvalidSignatureException the signature does not match")
	require.NotContains(t, err.Error(), "wrong-secret")

	cfg.Credentials = &once{}
	amazon.Fail(kmstest.Says(http.StatusBadRequest, `{"__type":"ExpiredTokenException"}`))
	_, text, err := with(cfg).Wrap(t.Context(), secret, "")
	require.NoError(t, err)
	cfg.Region = "us-east-1"
	_, err = with(cfg).Unwrap(t.Context(), kmstest.KeyARN, text)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))

	// A token that was taken back before its time is fetched anew.
	g := kmstest.Google(t)
	machine := Google{Project: "p", Region: "global", KeyRing: "r", CryptoKey: "k", Endpoint: g.URL, Metadata: g.Host()}
	w, err := NewGoogle(machine, Deps{Clock: &hasty{}})
	require.NoError(t, err)
	id, text, err := w.Wrap(t.Context(), secret, "")
	require.NoError(t, err)
	require.EqualValues(t, 1, g.Tokens.Load())
	g.Expire()
	_, err = w.Unwrap(t.Context(), id, text)
	require.NoError(t, err)
	require.EqualValues(t, 2, g.Tokens.Load())

	for _, bad := range []string{"", "{}", `{"type":"service_account","client_email":"a","private_key":"x"}`} {
		_, err = NewGoogle(Google{Credentials: []byte(bad)}, Deps{})
		require.Equal(t, drover.Invalid, drover.CodeOf(err), bad)
	}
	_, err = NewAzure(Azure{Environment: "AzureMoon"}, Deps{})
	require.ErrorContains(t, err, "environment")

	z := kmstest.Azure(t)
	w, err = NewAzure(Azure{
		Vault: "vault", Key: "drover", Endpoint: z.URL, Authority: z.URL, Tenant: "tenant", Client: kmstest.ClientID, Secret: "wr0ng",
	}, Deps{Clock: &hasty{}})
	require.NoError(t, err)
	_, _, err = w.Wrap(t.Context(), secret, "")
	require.ErrorContains(t, err, "invalid_client AADSTS7000215")
	require.NotContains(t, err.Error(), "wr0ng")
}

// TestRedirectsAreNotFollowed: the token would go with them.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := kmstest.Google(t)
	for name, f := range fixtures(t) {
		_, text, err := f.Wrap(t.Context(), secret, "")
		require.NoError(t, err)
		f.Fail(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect).ServeHTTP)
		_, err = f.Unwrap(t.Context(), f.keyID, text)
		require.Error(t, err, name)
	}
	require.Zero(t, other.Calls())
}
