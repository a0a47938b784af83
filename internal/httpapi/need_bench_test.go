package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/policy"
)

// silent is a writer of answers that nobody reads.
type silent struct{ header http.Header }

func (s *silent) Header() http.Header         { return s.header }
func (s *silent) Write(p []byte) (int, error) { return len(p), nil }
func (s *silent) WriteHeader(int)             {}

// deciding returns a request, and the endpoint that decides about it.
func deciding(t testing.TB, need Need) (*endpoint, *http.Request) {
	t.Helper()
	k := newTokens(t, map[acl.Secret]string{"7b1a6d52-3c59-4a57-b1fc-5a1b6c0e2f3d": `namespace "def*" { policy = "write" }
namespace "dev" { policy = "read" }`})
	cfg := testConfig()
	cfg.Resolver = k
	e := newEndpoint(&shared{Config: cfg.withDefaults()}, testFace{}, Route{Need: need, Handle: answers}, compressing())
	r := httptest.NewRequest("POST", "/v1/runners", nil)
	r.Header.Set("X-Nomad-Token", "7b1a6d52-3c59-4a57-b1fc-5a1b6c0e2f3d")
	return e, r
}

// Claims and all else in namespace default are decided about without allocating.
func TestDecidingAboutAClaimAllocatesNothing(t *testing.T) {
	claim, run := InDefault(policy.ClaimRunner), InDefault(policy.ClaimRunner, policy.Execute)
	for _, need := range []Need{claim, run, Level(policy.Fleet, policy.None)} {
		e, r := deciding(t, need)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := e.decide(nil, r); err != nil {
				panic(err)
			}
		}), need)
	}
}

// BenchmarkDecide is what deciding costs: of a claim, of a list, whose handler may ask who calls, and of a wrong token.
func BenchmarkDecide(b *testing.B) {
	for name, need := range map[string]Need{"claim": InDefault(policy.ClaimRunner), "list": InNamespace(policy.ReadJob)} {
		b.Run(name, func(b *testing.B) {
			e, r := deciding(b, need)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.decide(nil, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("wrong token", func(b *testing.B) {
		e, r := deciding(b, Management)
		e.Resolver = OneToken("s3cret")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.decide(nil, r); err == nil {
				b.Fatal("let in")
			}
		}
	})
}

// BenchmarkClaimRoute is a claim's request with and without access control, but for what the claim does.
func BenchmarkClaimRoute(b *testing.B) {
	for _, c := range []struct {
		name string
		need Need
		with bool
	}{{"without", Nothing, false}, {"with", InDefault(policy.ClaimRunner), true}} {
		b.Run(c.name, func(b *testing.B) {
			e, r := deciding(b, c.need)
			w := &silent{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				e.ServeHTTP(w, r)
			}
		})
	}
}
