package idp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is a clock that tests set.
type at struct {
	clock.Wall
	now atomic.Int64
}

func (c *at) Now() time.Time { return time.Unix(0, c.now.Load()) }

func (c *at) add(d time.Duration) { c.now.Add(int64(d)) }

// log is what was logged.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func setup(allow []netip.Prefix) (*Providers, *at, *log) {
	c, l := &at{}, &log{}
	c.now.Store(time.Now().UnixNano())
	logger := slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return New(Config{Allow: allow, Timeout: 2 * time.Second}, Deps{Clock: c, Log: logger}), c, l
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func pemOf(t *testing.T, key crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// signed is a token with the claims.
func signed(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) acl.Secret {
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	require.NoError(t, err)
	text, err := jwt.Signed(s).Claims(claims).Serialize()
	require.NoError(t, err)
	return acl.Secret(text)
}

// claimsAt are those of a good token.
func claimsAt(c *at, change func(map[string]any)) map[string]any {
	claims := map[string]any{
		"iss": "https://ci", "aud": "drover", "sub": "repo:web", "iat": c.Now().Unix(), "exp": c.Now().Add(time.Minute).Unix(),
	}
	if change != nil {
		change(claims)
	}
	return claims
}

// TestForgedTokens: every token but the one that the issuer signed, for us, in time, is refused.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	p, c, _ := setup(nil)
	key, other := newKey(t), newKey(t)
	public := pemOf(t, &key.PublicKey)
	m := &acl.AuthMethod{Name: "ci", Type: acl.MethodJWT, Config: &acl.AuthMethodConfig{
		JWTValidationPubKeys: []string{pemOf(t, &newKey(t).PublicKey), public}, BoundAudiences: []string{"drover", "x"},
		BoundIssuer: []string{"https://ci", "https://more"}, SigningAlgs: []string{"ES256"},
	}}
	good := signed(t, jose.ES256, key, "", claimsAt(c, nil))
	claims, err := p.VerifyJWT(t.Context(), m, good)
	require.NoError(t, err)
	require.Equal(t, "repo:web", claims["sub"])
	change := func(name string, v any) acl.Secret {
		return signed(t, jose.ES256, key, "", claimsAt(c, func(m map[string]any) {
			if m[name] = v; v == nil {
				delete(m, name)
			}
		}))
	}
	for what, token := range map[string]acl.Secret{
		"another key":                    signed(t, jose.ES256, other, "", claimsAt(c, nil)),
		"the public key as a shared one": signed(t, jose.HS256, []byte(public), "", claimsAt(c, nil)),
		"no signature":                   acl.Secret("eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2NpIiwiYXVkIjoiZHJvdmVyIiwiaWF0IjoxfQ."),
		"another issuer":                 change("iss", "https://evil"),
		"no issuer":                      change("iss", nil),
		"another audience":               change("aud", "elsewhere"),
		"no audience":                    change("aud", nil),
		"ended":                          change("exp", c.Now().Add(-2*time.Minute).Unix()),
		"not yet":                        change("nbf", c.Now().Add(2*time.Minute).Unix()),
		"issued in the future":           change("iat", c.Now().Add(2*time.Minute).Unix()),
		"no token":                       "x.y.z",
		"another signature":              good[:len(good)-10] + turned(good[len(good)-10:]),
		"endless":                        acl.Secret(make([]byte, maxToken+1)),
		"two issuers":                    change("ISS", "https://ci"),
	} {
		_, err := p.VerifyJWT(t.Context(), m, token)
		require.Error(t, err, what)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%s: %v", what, err)
		require.NotContains(t, err.Error(), string(token[:min(len(token), 20)]), what)
	}
	_, err = p.VerifyJWT(t.Context(), m, change("exp", c.Now().Add(-30*time.Second).Unix()))
	require.NoError(t, err, "clocks differ by less than a minute")
	strict := *m
	config := *m.Config
	config.ClockSkewLeeway = -1
	strict.Config = &config
	_, err = p.VerifyJWT(t.Context(), &strict, change("exp", c.Now().Add(-30*time.Second).Unix()))
	require.Error(t, err)
	config.SigningAlgs = nil
	_, err = p.VerifyJWT(t.Context(), &strict, good)
	require.ErrorContains(t, err, "unexpected algorithm", "RS256 where nobody says otherwise")
}

// turned is a text of which every character is another one.
func turned(s acl.Secret) acl.Secret {
	return acl.Secret(strings.Map(func(r rune) rune {
		if r == 'A' {
			return 'B'
		}
		return 'A'
	}, string(s)))
}

// keyServer publishes keys, and counts who asks.
type keyServer struct {
	*httptest.Server
	mu    sync.Mutex
	keys  jose.JSONWebKeySet // guarded by mu
	asked atomic.Int32
}

func newKeyServer(t *testing.T) *keyServer {
	s := &keyServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch r.URL.Path {
		case "/keys":
			s.asked.Add(1)
			_ = writeJSON(w, s.keys)
		case "/.well-known/openid-configuration":
			_ = writeJSON(w, map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys"})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) set(id string, key crypto.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: id, Algorithm: "ES256"}}}
}

func (s *keyServer) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// TestPublishedKeys: keys are fetched when they are new, seldom, and from whom the method trusts.
func TestPublishedKeys(t *testing.T) {
	t.Parallel()
	p, c, l := setup(loopback)
	s := newKeyServer(t)
	first, second := newKey(t), newKey(t)
	s.set("1", &first.PublicKey)
	methods := map[string]*acl.AuthMethod{
		"keys": {Name: "keys", Config: &acl.AuthMethodConfig{
			JWKSURL: s.URL + "/keys", JWKSCACert: s.authority(), SigningAlgs: []string{"ES256"},
		}},
		"discovery": {Name: "discovery", Config: &acl.AuthMethodConfig{
			OIDCDiscoveryURL: s.URL, DiscoveryCaPem: []string{s.authority()}, SigningAlgs: []string{"ES256"},
		}},
	}
	ours := func(m map[string]any) { m["iss"] = s.URL }
	for name, m := range methods {
		for range 3 {
			_, err := p.VerifyJWT(t.Context(), m, signed(t, jose.ES256, first, "1", claimsAt(c, ours)))
			require.NoError(t, err, name)
		}
	}
	require.EqualValues(t, 2, s.asked.Load(), "once a method")
	_, err := p.VerifyJWT(t.Context(), methods["discovery"], signed(t, jose.ES256, first, "1", claimsAt(c, nil)))
	require.ErrorContains(t, err, "invalid issuer", "the issuer is who was asked, where the method binds none")

	s.set("2", &second.PublicKey)
	next := signed(t, jose.ES256, second, "2", claimsAt(c, ours))
	m := methods["keys"]
	for range 100 { // a flood of tokens with keys that nobody knows
		_, err = p.VerifyJWT(t.Context(), m, next)
		require.ErrorContains(t, err, "no known key")
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	}
	require.EqualValues(t, 2, s.asked.Load(), "asked seldom")
	c.add(fetchEvery)
	later := signed(t, jose.ES256, second, "2", claimsAt(c, ours))
	require.Eventually(t, func() bool { // go-oidc hands a fetch's result on to who comes before its goroutine has ended
		_, err = p.VerifyJWT(t.Context(), m, later)
		return err == nil
	}, 10*time.Second, time.Millisecond, "keys were changed")

	stranger := &acl.AuthMethod{Name: "stranger", Config: &acl.AuthMethodConfig{JWKSURL: s.URL + "/keys"}}
	_, err = p.VerifyJWT(t.Context(), stranger, next)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
	require.Contains(t, l.String(), "certificate")
	require.NotContains(t, err.Error(), "127.0.0.1", "who logs in need not learn what this server reaches")
}

// TestWhereProvidersMayBe: loopback and the machine's metadata are not asked unless the configuration says so.
func TestWhereProvidersMayBe(t *testing.T) {
	t.Parallel()
	p, c, l := setup(nil)
	s := newKeyServer(t)
	key := newKey(t)
	for _, config := range []*acl.AuthMethodConfig{
		{JWKSURL: s.URL + "/keys", JWKSCACert: s.authority()},
		{OIDCDiscoveryURL: "http://169.254.169.254/latest"},
		{OIDCDiscoveryURL: "http://localhost:1"},
	} {
		_, err := p.VerifyJWT(t.Context(), &acl.AuthMethod{Name: "m", Config: config}, signed(t, jose.ES256, key, "1", claimsAt(c, nil)))
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		config.OIDCDiscoveryURL = s.URL
		_, err = p.AuthURL(t.Context(), &acl.AuthMethod{Name: "m", Type: acl.MethodOIDC, Config: config}, acl.AuthURLRequest{
			RedirectURI: "http://localhost:4649/oidc/callback", ClientNonce: "n",
		})
		require.Error(t, err)
	}
	require.Zero(t, s.asked.Load())
	require.Contains(t, l.String(), "acl.login_allow")
}

// TestProvidersThatDoNotAnswer: one that hangs, drips or sends without end holds a login up for a bounded time.
func TestProvidersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := bytes.Repeat([]byte(" "), 64<<10)
		switch r.URL.Path {
		case "/endless":
			for range 64 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case "/wrong/.well-known/openid-configuration":
			_ = writeJSON(w, map[string]any{"issuer": "https://else", "jwks_uri": "https://else/keys"})
		default:
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(func() { close(stop); s.Close() })
	p, c, l := setup(loopback)
	p.cfg.Timeout = 200 * time.Millisecond
	key := newKey(t)
	for what, config := range map[string]*acl.AuthMethodConfig{
		"drips":      {JWKSURL: s.URL + "/drip"},
		"discovery":  {OIDCDiscoveryURL: s.URL + "/drip"},
		"endless":    {JWKSURL: s.URL + "/endless"},
		"not itself": {OIDCDiscoveryURL: s.URL + "/wrong"},
	} {
		_, err := p.VerifyJWT(t.Context(), &acl.AuthMethod{Name: what, Config: config}, signed(t, jose.ES256, key, "1", claimsAt(c, nil)))
		require.Error(t, err, what)
		require.NotEqual(t, drover.Internal, drover.CodeOf(err), "%s: %v", what, err)
	}
	require.Contains(t, l.String(), "https://else")

	p.cfg.Timeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.VerifyJWT(ctx, &acl.AuthMethod{Name: "late", Config: &acl.AuthMethodConfig{JWKSURL: s.URL + "/late"}},
		signed(t, jose.ES256, key, "1", claimsAt(c, nil)))
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "who waits may give up: %v", err)
}
