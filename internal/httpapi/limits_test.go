package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi/throttle"
	"github.com/drover-project/drover/internal/policy"
)

// limited answers 204 to who may ask, of a token "a", a token "b" and anonymous.
func limited(t *testing.T, l *Limits) func(path, token, from string) *httptest.ResponseRecorder {
	cfg := testConfig()
	cfg.Limits = l
	cfg.Resolver = newTokens(t, map[acl.Secret]string{"a": `agent { policy = "read" }`, "b": `agent { policy = "read" }`})
	answer := func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	reads := Level(policy.Agent, policy.Read)
	h := Handler(cfg, testFace{
		{Pattern: "GET /level", Need: reads, Handle: answer},
		{Pattern: "GET /filtered", Need: Filtered("some"), Handle: answer},
		{Pattern: "GET /late", Need: Filtered("some").InHandshake(), Handle: func(w http.ResponseWriter, r *http.Request) error {
			if err := Identify(r.Context(), "a"); err != nil {
				return err
			}
			return answer(w, r)
		}},
		{Pattern: "GET /health", Need: reads.OpenAs(acl.OpenHealth), Handle: answer},
		{Pattern: "GET /status", Need: reads.OpenAs(acl.OpenStatus), Handle: answer},
	})
	return func(path, token, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host, r.RemoteAddr = "127.0.0.1", from
		if token != "" {
			r.Header.Set("X-Nomad-Token", token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

func TestATokenIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		ask := limited(t, &Limits{Tokens: throttle.New[string](0.25, 3), Refused: func(by string) {
			require.Equal(t, "token", by)
			refused++
		}})
		for _, path := range []string{"/level", "/filtered", "/late"} { // each way to find out who calls takes of one bucket
			require.Equal(t, http.StatusNoContent, ask(path, "a", "10.0.0.1:1").Code)
		}
		time.Sleep(time.Second)
		for i, path := range []string{"/level", "/filtered", "/late"} {
			w := ask(path, "a", "10.0.0.2:1")
			require.Equal(t, http.StatusTooManyRequests, w.Code, path)
			require.Equal(t, "3", w.Header().Get("Retry-After"))
			require.Contains(t, w.Body.String(), "(limits.http_requests_per_token): try again in 3s")
			require.Equal(t, i+1, refused)
		}
		require.Equal(t, http.StatusNoContent, ask("/level", "b", "10.0.0.1:1").Code, "another token")
		for range 10 {
			require.Equal(t, http.StatusNoContent, ask("/health", "a", "10.0.0.1:1").Code)
			require.Equal(t, http.StatusForbidden, ask("/level", "unknown", "10.0.0.1:1").Code, "tokens that nobody knows take no room")
		}
		time.Sleep(3 * time.Second)
		require.Equal(t, http.StatusNoContent, ask("/level", "a", "10.0.0.1:1").Code)
		require.Equal(t, http.StatusTooManyRequests, ask("/level", "a", "10.0.0.1:1").Code)
	})
}

func TestAnAddressIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ask := limited(t, &Limits{Addresses: throttle.New[netip.Addr](1, 2)})
		require.Equal(t, http.StatusForbidden, ask("/level", "guess 1", "10.0.0.1:1").Code)
		require.Equal(t, http.StatusNoContent, ask("/status", "", "10.0.0.1:2").Code, "open routes count")
		require.Equal(t, http.StatusTooManyRequests, ask("/level", "guess 2", "10.0.0.1:3").Code, "no token is looked at any more")
		require.Equal(t, http.StatusTooManyRequests, ask("/status", "", "[::ffff:10.0.0.1]:3").Code)
		require.Equal(t, http.StatusNoContent, ask("/health", "", "10.0.0.1:4").Code)
		require.Equal(t, http.StatusNoContent, ask("/level", "a", "10.0.0.2:4").Code)
		for range 2 {
			require.Equal(t, http.StatusNoContent, ask("/level", "a", "[2001:db8::1]:1").Code)
		}
		require.Equal(t, http.StatusTooManyRequests, ask("/level", "a", "[2001:db8::ffff:1]:1").Code, "one network of 64 bits")
		require.Equal(t, http.StatusNoContent, ask("/level", "a", "[2001:db8:0:1::1]:1").Code)
	})
}

// TestARelayedRequestWasCounted: all requests that another agent passes on come from its address.
func TestARelayedRequestWasCounted(t *testing.T) {
	t.Parallel()
	e := &endpoint{shared: &shared{Config: testConfig()}}
	e.Limits = &Limits{Addresses: throttle.New[netip.Addr](1, 1)}
	for range 5 {
		r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(WithHop(context.Background(), Hop{}))
		require.NoError(t, e.limitAddress(r))
	}
}

func BenchmarkLimits(b *testing.B) {
	e := &endpoint{shared: &shared{Config: testConfig()}}
	e.Limits = &Limits{Addresses: throttle.New[netip.Addr](1e6, 1e6), Tokens: throttle.New[string](1e6, 1e6)}
	caller := newTokens(b, map[acl.Secret]string{"a": ""}).of["a"]
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		if e.limitAddress(r) != nil || e.limitCaller(caller) != nil {
			b.Log("refused")
		}
	}
}
