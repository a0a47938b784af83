package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// tokens are what a test's callers may do, by their secrets.
type tokens struct {
	mu sync.Mutex
	of map[acl.Secret]*rights.Caller // guarded by mu
}

// newTokens makes clients' tokens of policies by secrets; the secret "" is anonymous.
func newTokens(t testing.TB, rules map[acl.Secret]string) *tokens {
	t.Helper()
	k := &tokens{of: map[acl.Secret]*rights.Caller{}}
	for secret, text := range rules {
		k.set(t, secret, text)
	}
	return k
}

func (k *tokens) set(t testing.TB, secret acl.Secret, rules string) {
	t.Helper()
	caller := &rights.Caller{Token: &acl.Token{AccessorID: string(secret), Type: acl.ClientToken}}
	if rules != "" {
		p, err := policy.Parse(rules)
		require.NoError(t, err, rules)
		caller.Rights = rights.Compile(p)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[secret] = caller
}

func (k *tokens) revoke(secret acl.Secret) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.of, secret)
}

func (k *tokens) Resolve(secret acl.Secret) (*rights.Caller, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.of[secret]; c != nil {
		return c, nil
	}
	return nil, drover.Errorf(drover.Forbidden, "ACL token not found")
}

// answers is the handler of a route for which the caller does not matter.
func answers(http.ResponseWriter, *http.Request) error { return nil }

// needed are needs of all kinds, by paths.
func needed() map[string]Need {
	return map[string]Need{
		"/nothing": Nothing, "/anybody": Anybody, "/management": Management, "/undeclared": {},
		"/asked": InNamespace(policy.ReadJob), "/object": OfObject(policy.ReadJob),
		"/claim": InDefault(policy.ClaimRunner), "/run": InDefault(policy.ClaimRunner, policy.Execute),
		"/node": Level(policy.Node, policy.Read), "/save": Operator(policy.SnapshotSave),
		"/pool/{name}": OfPool(policy.ReadPool),
		"/depends": Depends(func(r *http.Request) Need {
			switch r.URL.Query().Get("x") {
			case "node":
				return Level(policy.Node, policy.Read)
			case "asked":
				return InNamespace(policy.ReadJob)
			}
			return Need{}
		}, Case{}),
	}
}

func TestEachNeedIsMetByItsRight(t *testing.T) {
	t.Parallel()
	const all = `namespace "*" { capabilities = ["read-job", "claim-runner", "execute"] }
node { policy = "write" }
operator { capabilities = ["snapshot-save"] }
node_pool "gpu" { policy = "read" }`
	k := newTokens(t, map[acl.Secret]string{
		"": "", "all": all,
		"dev":     `namespace "dev" { capabilities = ["read-job"] }`,
		"default": `namespace "default" { capabilities = ["claim-runner"] }`,
		"both":    `namespace "default" { capabilities = ["claim-runner", "execute"] }`,
		"node":    `node { policy = "read" }`,
		"saver":   `operator { capabilities = ["snapshot-save"] }`,
		"pool":    `node_pool "g*" { policy = "read" }`,
	})
	k.of["root"] = &rights.Caller{Token: &acl.Token{}, Rights: rights.Management()}
	var face testFace
	for path, n := range needed() {
		face = append(face, Route{Pattern: "GET " + path, Need: n, Handle: answers})
	}
	cfg := testConfig()
	cfg.Resolver = k
	h := Handler(cfg, face)
	for path, may := range map[string]string{
		"/nothing":                       "anonymous wrong all dev default both node saver pool root",
		"/anybody":                       "anonymous all dev default both node saver pool root",
		"/management":                    "root",
		"/undeclared":                    "root",
		"/asked":                         "all root",
		"/asked?namespace=":              "all root",
		"/asked?namespace=dev":           "all dev root",
		"/asked?namespace=de":            "all root",
		"/asked?namespace=*":             "all dev root",
		"/asked?x=%&namespace=dev":       "all dev root",
		"/object":                        "all dev root",
		"/claim":                         "all default both root",
		"/claim?namespace=dev":           "all default both root",
		"/run":                           "all both root",
		"/node":                          "all node root",
		"/save":                          "all saver root",
		"/pool/gpu":                      "all pool root",
		"/pool/g2":                       "pool root",
		"/depends?x=node":                "all node root",
		"/depends?x=asked&namespace=dev": "all dev root",
		"/depends?x=none":                "anonymous all dev default both node saver pool root",
	} {
		for _, who := range []string{"anonymous", "wrong", "all", "dev", "default", "both", "node", "saver", "pool", "root"} {
			var header []string
			if who != "anonymous" {
				header = []string{"X-Nomad-Token", who}
			}
			reply := do(t, h, "GET", path, "", header...)
			want := http.StatusForbidden
			for _, w := range strings.Fields(may) {
				if w == who {
					want = http.StatusOK
				}
			}
			require.Equal(t, want, reply.Code, "%s by %s", path, who)
			switch {
			case want == http.StatusOK:
			case who == "wrong":
				require.Equal(t, "ACL token not found", reply.Body.String())
			default:
				require.Equal(t, "Permission denied", reply.Body.String())
				require.NotEmpty(t, reply.Header().Get(NeedsHeader))
			}
		}
	}
	require.Equal(t, http.StatusMethodNotAllowed, do(t, h, "PUT", "/management", "").Code, "methods are no secret")
	require.Equal(t, "node:read", do(t, h, "GET", "/depends?x=node", "").Header().Get(NeedsHeader))
}

// Where an object decides, of a route that is open to anybody, "it needs anybody" would help nobody.
func TestWhatIsOpenNamesNoNeed(t *testing.T) {
	t.Parallel()
	denies := func(http.ResponseWriter, *http.Request) error { return ErrDenied }
	cfg := testConfig()
	cfg.Resolver = newTokens(t, map[acl.Secret]string{"": ""})
	h := Handler(cfg, testFace{
		{Pattern: "GET /nothing", Need: Nothing, Handle: denies}, {Pattern: "GET /anybody", Need: Anybody, Handle: denies},
	})
	for _, path := range []string{"/nothing", "/anybody"} {
		reply := do(t, h, "GET", path, "")
		require.Equal(t, http.StatusForbidden, reply.Code)
		require.Empty(t, reply.Header().Get(NeedsHeader), path)
	}
}

// A configuration opens groups of routes, and closes those that are open otherwise.
func TestGroupsOfRoutesAreOpenedAndClosed(t *testing.T) {
	t.Parallel()
	read := Level(policy.Agent, policy.Read)
	face := testFace{
		{Pattern: "GET /health", Need: read.OpenAs(acl.OpenHealth), Handle: answers},
		{Pattern: "GET /metrics", Need: read.OpenAs(acl.OpenMetrics), Handle: answers},
		{Pattern: "GET /self", Need: read, Handle: answers},
	}
	for _, c := range []struct {
		open                  []string
		health, metrics, self int
	}{
		{nil, 200, 401, 401}, {[]string{}, 401, 401, 401}, {[]string{acl.OpenMetrics}, 401, 200, 401}, {acl.OpenGroups(), 200, 200, 401},
	} {
		cfg := testConfig()
		cfg.Resolver, cfg.Open = OneToken("s3cret"), c.open
		h := Handler(cfg, face)
		for path, want := range map[string]int{"/health": c.health, "/metrics": c.metrics, "/self": c.self} {
			require.Equal(t, want, do(t, h, "GET", path, "").Code, "%v %s", c.open, path)
			require.Equal(t, 200, do(t, h, "GET", path, "", "X-Nomad-Token", "s3cret").Code)
		}
	}
	require.Equal(t, "nothing; agent:read where `open_routes` lacks \"health\"", read.OpenAs(acl.OpenHealth).String())
	require.Equal(t, "agent:read; nothing where `open_routes` has \"metrics\"", read.OpenAs(acl.OpenMetrics).String())
}

// Without a resolver, as without api_token and access control, everybody may do everything.
func TestWithoutAResolverEverybodyManages(t *testing.T) {
	t.Parallel()
	h := Handler(testConfig(), testFace{
		{Pattern: "GET /m", Need: Management, Handle: answers},
		{Pattern: "GET /o", Need: OfObject(policy.ReadFS), Handle: func(_ http.ResponseWriter, r *http.Request) error {
			require.True(t, CallerOf(r.Context()).Management())
			return Allow(r.Context(), "any", policy.ReadFS)
		}},
	})
	require.Equal(t, http.StatusOK, do(t, h, "GET", "/m", "").Code)
	require.Equal(t, http.StatusOK, do(t, h, "GET", "/o", "", "X-Nomad-Token", "whatever").Code)
}

// Handlers ask for the object's namespace. Where nothing said who calls, nobody does.
func TestHandlersDecideAboutObjects(t *testing.T) {
	t.Parallel()
	k := newTokens(t, map[acl.Secret]string{"dev": `namespace "dev" { policy = "read" }`})
	cfg := testConfig()
	cfg.Resolver = k
	ask := func(_ http.ResponseWriter, r *http.Request) error {
		return Allow(r.Context(), r.URL.Query().Get("of"), policy.ReadJob)
	}
	h := Handler(cfg, testFace{
		{Pattern: "GET /object", Need: OfObject(policy.ReadJob), Handle: ask},
		{Pattern: "GET /late", Need: OfObject(policy.ReadJob).InHandshake(), Handle: func(w http.ResponseWriter, r *http.Request) error {
			require.ErrorIs(t, ask(w, r), ErrDenied, "nobody said yet who it is")
			if err := Identify(r.Context(), r.URL.Query().Get("secret")); err != nil {
				return err
			}
			return ask(w, r)
		}},
		{Pattern: "GET /fixed", Need: Nothing, Handle: ask},
	})
	for path, want := range map[string]int{
		"/object?of=dev": 200, "/object?of=prod": 403, "/fixed?of=dev": 403,
		"/late?of=dev&secret=dev": 200, "/late?of=prod&secret=dev": 403, "/late?of=dev&secret=x": 403, "/late?of=dev": 403,
	} {
		require.Equal(t, want, do(t, h, "GET", path, "", "X-Nomad-Token", "dev").Code, path)
	}
	require.ErrorIs(t, Allow(t.Context(), "dev", policy.ReadJob), ErrDenied)
	require.ErrorIs(t, Identify(t.Context(), "dev"), ErrDenied)
	require.False(t, CallerOf(t.Context()).Management())
}

// A stream ends within seconds when its token is revoked or its policies give less, also less than its handler asked for.
func TestAStreamEndsWithItsRight(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(k *tokens){
		"revoked":       func(k *tokens) { k.revoke("dev") },
		"less":          func(k *tokens) { k.set(t, "dev", `namespace "dev" { policy = "deny" }`) },
		"elsewhere":     func(k *tokens) { k.set(t, "dev", `namespace "other" { policy = "read" }`) },
		"it may go on":  nil,
		"more, even so": func(k *tokens) { k.set(t, "dev", `namespace "*" { policy = "write" }`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newTokens(t, map[acl.Secret]string{"dev": `namespace "dev" { policy = "read" }`})
				cfg := testConfig()
				cfg.Resolver = k
				var cause error
				h := Handler(cfg, testFace{{
					Pattern: "GET /follow", Need: OfObject(policy.ReadJob), Stream: true,
					Handle: func(_ http.ResponseWriter, r *http.Request) error {
						if err := Allow(r.Context(), "dev", policy.ReadJob); err != nil {
							return err
						}
						select {
						case <-r.Context().Done():
							cause = r.Context().Err()
						case <-time.After(time.Hour):
						}
						return nil
					},
				}})
				began := time.Now()
				done := make(chan struct{})
				go func() { // ends with the stream
					defer close(done)
					require.Equal(t, 200, do(t, h, "GET", "/follow", "", "X-Nomad-Token", "dev").Code)
				}()
				time.Sleep(time.Minute)
				if end != nil {
					end(k)
				}
				<-done
				switch name {
				case "revoked", "less", "elsewhere":
					require.Error(t, cause)
					require.LessOrEqual(t, time.Since(began), time.Minute+2*cfg.withDefaults().StreamCheck)
				default:
					require.NoError(t, cause)
					require.Equal(t, time.Hour, time.Since(began))
				}
			})
		})
	}
}

// What a server asks of an agent without one it decided itself; all others are asked for their token.
func TestServersDecideForNodes(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Resolver = OneToken("node's own")
	cfg.ServersDecide = true
	h := Handler(cfg, testFace{{Pattern: "GET /self", Need: Level(policy.Agent, policy.Read), Where: Here, Handle: answers}})
	ask := func(hop *Hop) int {
		r := httptest.NewRequest("GET", "/self", nil)
		r.Host = "127.0.0.1"
		r.Header.Set("X-Nomad-Token", "a token of the servers")
		if hop != nil {
			r = r.WithContext(WithHop(r.Context(), *hop))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 200, ask(&Hop{Way: FromServer}))
	require.Equal(t, 403, ask(&Hop{Way: FromNode}))
	require.Equal(t, 403, ask(&Hop{Way: FromRegion}))
	require.Equal(t, 403, ask(nil))
}

// A token in the query is none; a huge one is refused as any other.
func TestTokensComeInHeaders(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.Resolver = OneToken("s3cret")
	h := Handler(cfg, testFace{{Pattern: "GET /x", Need: Management, Handle: answers}})
	require.Equal(t, 401, do(t, h, "GET", "/x?token=s3cret&X-Nomad-Token=s3cret", "").Code)
	require.Equal(t, 403, do(t, h, "GET", "/x", "", "X-Nomad-Token", strings.Repeat("s3cret", 100_000)).Code)
	require.Equal(t, 403, do(t, h, "GET", "/x", "", "X-Nomad-Token", "s3cre").Code)
	require.Equal(t, 403, do(t, h, "GET", "/x", "", "X-Nomad-Token", "s3cret\x00").Code)
	require.Equal(t, 200, do(t, h, "GET", "/x", "", "X-Nomad-Token", "s3cret").Code)
}

func TestNeedsAreWordsForPeople(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]Need{
		"nothing": Nothing, "anybody": Anybody, "management": Management, "undeclared": {}, "node:write": Level(policy.Node, policy.Write),
		"read-job in the namespace asked for":           InNamespace(policy.ReadJob),
		"claim-runner and execute in namespace default": InDefault(policy.ClaimRunner, policy.Execute),
		"read-fs in the object's namespace":             OfObject(policy.ReadFS),
		"snapshot-save of operators":                    Operator(policy.SnapshotSave),
		"write of the node pool":                        OfPool(policy.WritePool),
		"anybody; shows little":                         Filtered("little"),
		"fleet:read; shows less":                        Level(policy.Fleet, policy.Read).Showing("less"),
		"what the path says":                            Depends(nil),
	} {
		require.Equal(t, want, n.String())
	}
}
