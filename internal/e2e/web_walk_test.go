package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web"
)

// siteMap has every page: a name, the pattern of its route, and a path of it, in which words in braces stand for ids of what is there.
var siteMap = []struct{ name, route, path string }{
	{"overview", "/ui/{$}", "/ui/"},
	{"playground", "/ui/play", "/ui/play?environment=py"},
	{"environments", "/ui/environments", "/ui/environments"},
	{"environment", "/ui/environments/{environment}", "/ui/environments/py"},
	{"runners", "/ui/runners", "/ui/runners"},
	{"runner", "/ui/runners/{runner}", "/ui/runners/{runner}"},
	{"runner-files", "/ui/runners/{runner}/files", "/ui/runners/{runner}/files"},
	{"runner-terminal", "/ui/runners/{runner}/terminal", "/ui/runners/{runner}/terminal"},
	{"executions", "/ui/executions", "/ui/executions"},
	{"execution", "/ui/executions/{execution}", "/ui/executions/{execution}"},
	{"jobs", "/ui/jobs", "/ui/jobs"},
	{"run", "/ui/jobs/run", "/ui/jobs/run"},
	{"job", "/ui/jobs/{job}", "/ui/jobs/seen@default"},
	{"job-versions", "/ui/jobs/{job}/versions", "/ui/jobs/seen@default/versions"},
	{"job-evaluations", "/ui/jobs/{job}/evaluations", "/ui/jobs/stuck@default/evaluations"},
	{"job-deployments", "/ui/jobs/{job}/deployments", "/ui/jobs/seen@default/deployments"},
	{"job-definition", "/ui/jobs/{job}/definition", "/ui/jobs/seen@default/definition"},
	{"allocations", "/ui/allocations", "/ui/allocations"},
	{"allocation", "/ui/allocations/{allocation}", "/ui/allocations/{allocation}"},
	{"logs", "/ui/allocations/{allocation}/logs", "/ui/allocations/{allocation}/logs"},
	{"files", "/ui/allocations/{allocation}/files", "/ui/allocations/{allocation}/files"},
	{"terminal", "/ui/allocations/{allocation}/terminal", "/ui/allocations/{allocation}/terminal"},
	{"nodes", "/ui/clients", "/ui/clients"},
	{"node", "/ui/clients/{node}", "/ui/clients/{node}"},
	{"topology", "/ui/topology", "/ui/topology"},
	{"fleet", "/ui/fleet", "/ui/fleet"},
	{"machine", "/ui/fleet/machines/{machine}", "/ui/fleet/machines/none"},
	{"timeline", "/ui/fleet/timeline", "/ui/fleet/timeline"},
	{"simulator", "/ui/fleet/simulate", "/ui/fleet/simulate"},
	{"events", "/ui/events", "/ui/events"},
	{"servers", "/ui/servers", "/ui/servers"},
	{"doctor", "/ui/doctor", "/ui/doctor"},
	{"audit", "/ui/audit", "/ui/audit?operation=PUT"},
	{"deployments", "/ui/deployments", "/ui/deployments"},
	{"deployment", "/ui/deployments/{deployment}", "/ui/deployments/{deployment}"},
	{"evaluations", "/ui/evaluations", "/ui/evaluations"},
	{"evaluation", "/ui/evaluations/{evaluation}", "/ui/evaluations/{evaluation}"},
	{"services", "/ui/services", "/ui/services"},
	{"service", "/ui/services/{service}", "/ui/services/found?namespace=default"},
	{"volumes", "/ui/volumes", "/ui/volumes"},
	{"volume", "/ui/volumes/{volume}", "/ui/volumes/{volume}"},
	{"variables", "/ui/variables", "/ui/variables"},
	{"variable", "/ui/variable", "/ui/variable?namespace=default&path=app%2Fdb&values=shown"},
	{"variable-edit", "/ui/variable/edit", "/ui/variable/edit?namespace=default&path=app%2Fdb"},
	{"namespaces", "/ui/namespaces", "/ui/namespaces"},
	{"namespace", "/ui/namespaces/{namespace}", "/ui/namespaces/team"},
	{"tokens", "/ui/access", "/ui/access"},
	{"token", "/ui/access/tokens/{token}", "/ui/access/tokens/{token}"},
	{"policies", "/ui/access/policies", "/ui/access/policies"},
	{"policy", "/ui/access/policies/{policy}", "/ui/access/policies/look"},
	{"roles", "/ui/access/roles", "/ui/access/roles"},
	{"methods", "/ui/access/methods", "/ui/access/methods"},
	{"rules", "/ui/access/rules", "/ui/access/rules"},
	{"search", "/ui/search", "/ui/search?q=seen"},
	{"login", "/ui/login", "/ui/login"},
	{"unknown", "/ui/{rest...}", "/ui/no/page"},
}

// noPages are the routes that answer with something else than a page: what scripts ask for, files, and what leads elsewhere.
var noPages = []string{
	"/{$}", "/ui", "/ui/live", "/ui/play/live/{runner}", "/ui/settings/tokens", "/ui/static/{version}/{name}", "/ui/topology/data",
	"/ui/events/stream",
	"/ui/allocations/{allocation}/logs/live", "/ui/allocations/{allocation}/logs/file", "/ui/allocations/{allocation}/files/raw",
	"/ui/allocations/{allocation}/terminal/live", "/ui/runners/{runner}/files/raw", "/ui/runners/{runner}/terminal/live",
	"/ui/executions/{execution}/live", "/ui/executions/{execution}/output", "/ui/executions/{execution}/cast",
	"/ui/executions/{execution}/timeline",
}

// TestEveryPageStandsInTheSiteMap: each route that is read is in the table that the walk goes along, or is said to be no page.
func TestEveryPageStandsInTheSiteMap(t *testing.T) {
	t.Parallel()
	var known, routes []string
	for _, page := range siteMap {
		known = append(known, page.route)
	}
	for _, route := range (&web.Face{}).Routes() {
		if method, pattern, _ := strings.Cut(route.Pattern, " "); method == http.MethodGet {
			routes = append(routes, pattern)
		}
	}
	known = append(known, noPages...)
	slices.Sort(known)
	slices.Sort(routes)
	require.Equal(t, known, routes, "a page wants a row in siteMap, and what is none a word in noPages")
}

// TestAWalkOverEveryPage opens each page of the site map in one browser. It has no serious finding of axe in light and dark, wide
// and on a phone, where it is not wider than the phone. It runs no code of others, and says when its connection is lost. Then it
// asks for each of them where nothing is there, with a token that may not, and where the API answers with errors: each answers in
// words and leads on.
func TestAWalkOverEveryPage(t *testing.T) {
	t.Parallel()
	a, pages := populated(t)
	b, site := openTab(t), "http://"+a.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	b.signIn(site, a.token)
	for name, path := range pages {
		b.do(chromedp.EmulateViewport(1280, 860))
		b.open(site, path)
		if name != "machine" && name != "unknown" { // of them there is none
			require.Zero(t, eval[int](b, `document.querySelectorAll('.notice.bad[role=alert], main b, main i, main img').length`), name)
		}
		require.LessOrEqual(t, eval[int](b, weight), 150_000, "%s: bytes of scripts and styles, compressed", name)
		b.accessible()
		b.walked(name + "-light")
		b.themed("dark")
		b.drawn()
		b.walked(name + "-dark")
		b.do(chromedp.EmulateViewport(360, 740))
		require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360, name)
		b.drawn()
		b.walked(name + "-phone-dark")
		b.themed("light")
		b.drawn()
		b.walked(name + "-phone-light")
		require.True(t, eval[bool](b, `dispatchEvent(new Event('offline')) && document.getElementById('live').dataset.state === 'lost'`), name)
	}

	look := &looks{b: b, seen: map[string]bool{}}
	_, err := a.nomad().ACLPolicies().Upsert(&api.ACLPolicy{Name: "elsewhere", Rules: `namespace "elsewhere" { policy = "read" }`}, nil)
	require.NoError(t, err)
	nobody, _, err := a.nomad().ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"elsewhere"}}, nil)
	require.NoError(t, err)
	b.signIn(site, nobody.SecretID)
	for name, path := range pages {
		status, body := readPage(t, site+path, nobody.SecretID)
		require.NotContains(t, body, "s3cret", name)
		if status == http.StatusForbidden {
			require.Contains(t, body, `href="/ui/login?next=`, name)
		}
		look.at(site, path, status, body)
	}

	empty := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "data"), "")...)...)
	for name, path := range pages {
		status, body := readPage(t, "http://"+empty.addr+path, "")
		require.Less(t, status, http.StatusInternalServerError, "%s: %s", name, body)
		look.at("http://"+empty.addr, path, status, body)
	}
	empty.Stop()

	var mode atomic.Int64
	failing := func(hear func(path string)) string {
		f := &web.Face{Clock: clock.Wall{}, API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hear(r.URL.Path)
			http.Error(w, "No leader is <b>elected</b>", int(mode.Load()))
		})}
		srv := httptest.NewServer(httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}}, f))
		closeLast(t, srv)
		return srv.URL
	}
	var asked atomic.Bool
	read := failing(func(path string) { asked.Store(asked.Load() || path != "/v1/rights") })
	seen := failing(func(string) {}) // a page that stands in the browser asks again when it likes
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		mode.Store(int64(status))
		for name, path := range pages {
			asked.Store(false)
			got, body := readPage(t, read+path, "")
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound, status}, got, name)
			if asked.Load() && name != "login" { // who signs in needs no list of methods
				require.Contains(t, body, "No leader is &lt;b&gt;elected&lt;/b&gt;", "%s of %d", name, status)
			}
			look.at(seen, path, got, body)
		}
	}
	t.Logf("pages that say that they have nothing, may not or cannot: %d; looked at: %d", look.asked, len(look.seen))
}

// weight is how many bytes the scripts and styles of a page are on the wire.
const weight = `performance.getEntriesByType('resource').filter(e => /\.(js|mjs|css)$/.test(new URL(e.name).pathname))
	.reduce((n, e) => n + e.encodedBodySize, 0)`

// walked keeps a picture of a page of the walk, if DROVER_SCREENSHOTS_OF_ALL is set: there are hundreds.
func (b *tab) walked(name string) {
	b.t.Helper()
	if os.Getenv("DROVER_SCREENSHOTS_OF_ALL") != "" {
		b.picture(name)
	}
}

// themed shows the page in another theme.
func (b *tab) themed(name string) {
	b.t.Helper()
	_ = eval[string](b, `document.documentElement.dataset.theme = '`+name+`'`)
}

// readPage asks for a page as a browser does that is signed in with a token, unless that is "".
func readPage(t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	if token != "" {
		r.AddCookie(&http.Cookie{Name: "drover-" + r.URL.Port(), Value: base64.RawURLEncoding.EncodeToString([]byte(token))})
	}
	client := http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	require.NoError(t, err)
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, string(content)
}

// looks are what pages look like that have little to show: those of one shape are opened in the browser once.
type looks struct {
	b     *tab
	seen  map[string]bool // by shape
	asked int
}

// at checks that a page has a title and words, says what is wrong if something is, and leads somewhere. It looks at it if none was like it.
func (l *looks) at(site, path string, status int, body string) {
	l.b.t.Helper()
	t, where := l.b.t, fmt.Sprintf("%s with %d", path, status)
	l.asked++
	root, err := html.Parse(strings.NewReader(body))
	require.NoError(t, err)
	title, words, alerts, ways, shape := "", "", 0, 0, ""
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode && within(n, "main") && within(n, "h1"):
			title += n.Data
		case n.Type == html.TextNode && within(n, "main"):
			words += n.Data
		case n.Type == html.ElementNode && within(n, "main"):
			shape += n.Data + attribute(n, "class") + " "
			if attribute(n, "role") == "alert" {
				alerts++
			}
		case n.Data == "a" && strings.HasPrefix(attribute(n, "href"), "/ui/"):
			ways++
		}
	}
	require.NotEmpty(t, title, where)
	require.Greater(t, len(strings.TrimSpace(words)), 10, where)
	require.Positive(t, ways, where)
	if status >= http.StatusBadRequest && path != "/ui/no/page" {
		require.Positive(t, alerts, where)
	}
	if l.seen[shape] {
		return
	}
	l.seen[shape] = true
	l.b.open(site, path)
	l.b.accessible()
	u, err := url.Parse(path)
	require.NoError(t, err)
	l.b.walked(fmt.Sprintf("bare-%d%s", status, strings.ReplaceAll(u.Path, "/", "-")))
}

// within reports whether a node is in an element of a kind.
func within(n *html.Node, kind string) bool {
	for p := range n.Ancestors() {
		if p.Data == kind {
			return true
		}
	}
	return false
}

// attribute is an attribute of an element; "" if it has none.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
