package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/httpapi/web/viewers"
)

const (
	attentionPath = "/v1/attention"
	streamPath    = "/v1/event/stream"
	// badAttention has names that turn and hold markup, and an area of a newer server.
	badAttention = `{"state": "broken", "areas": [
		{"name": "nodes", "state": "weak", "says": "1 of 2 nodes ready for work, 1 away."},
		{"name": "new", "state": "odd", "says": "<b>"}], "concerns": [
		{"code": "job.not_placed", "area": "evaluations", "state": "broken", "subject": "a/b", "namespace": "ns", "count": 2,
			"since": "2026-01-02T03:04:05Z", "says": "job <img src=x onerror=alert(1)>\u202e", "next": "drover eval status e1"},
		{"code": "deployment.promotion", "area": "deployments", "state": "weak", "subject": "web", "namespace": "ns", "says": "waits"},
		{"code": "node.down", "area": "nodes", "state": "weak", "count": 7, "says": "7 more of the same kind"},
		{"code": "node.down", "area": "nodes", "state": "weak", "subject": "n1", "says": "node n1 is down"}]}`
)

func TestTheOverviewLeadsToCauses(t *testing.T) {
	t.Parallel()
	w := ask(t, of(fixed{attentionPath: {http.StatusOK, badAttention}}), "GET", "/ui/", "good", nil)
	require.Equal(t, http.StatusOK, w.Code)
	body := w.Body.String()
	inert(t, body)
	for _, s := range []string{
		`<section id="areas" data-live="Node Job `, `data-every="5"`, `<a href="/ui/clients">Nodes</a>`, `<span class="status warn">weak</span>`,
		"Attention (4)", `<a href="/ui/jobs/a%2Fb@ns/evaluations"><bdi>job &lt;img`, "2026-01-02 03:04:05", "<code>drover eval status e1</code>",
		`<a href="/ui/jobs/web@ns/deployments">`, `<a href="/ui/clients"><bdi>7 more`, `<a href="/ui/clients/n1">`, "<strong>new</strong>",
		`<output id="live"`, `aria-current="page"`,
	} {
		require.Contains(t, body, s)
	}
	require.Equal(t, 1, strings.Count(body, "aria-current"))
}

func TestTheOverviewSaysThatAllIsWellOrWhyNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		api    fixed
		status int
		holds  string
	}{
		"well": {
			fixed{attentionPath: {http.StatusOK, `{"areas": [{"name": "nodes", "state": "ok", "says": "3"}]}`}},
			http.StatusOK,
			"Nothing wants attention.",
		},
		"nothing to see": {fixed{attentionPath: {http.StatusOK, `{}`}}, http.StatusOK, "It needs a right to read"},
		"no right":       {fixed{}, http.StatusForbidden, text.Forbidden},
		"no leader": {
			fixed{attentionPath: {http.StatusServiceUnavailable, `{"message": "nobody leads"}`}},
			http.StatusServiceUnavailable,
			`<section id="failed" data-live="" data-every="2">`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ask(t, of(c.api), "GET", "/ui/", "good", nil)
			require.Equal(t, c.status, w.Code)
			require.Contains(t, w.Body.String(), c.holds)
			inert(t, w.Body.String())
		})
	}
}

// TestALivePageHasTheStreamOfItsViewer: the API is asked with the viewer's token, from the index on that the page has, and what it
// refuses is refused.
func TestALivePageHasTheStreamOfItsViewer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked string
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = r.URL.String() + " " + r.Header.Get("X-Drover-Token")
		mu.Unlock()
		if r.URL.Query().Get("index") == "4" {
			w.WriteHeader(http.StatusGone)
			return
		}
		_, _ = w.Write([]byte(`{"Index":7}` + "\n" + `{"Index":8,"Topics":["Job"]}` + "\n"))
	}))
	w := ask(t, h, "GET", "/ui/live?topic=Job&topic=Node&index=7&payload=x", "good", nil)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/x-ndjson", w.Header().Get("Content-Type"))
	require.Equal(t, `{"Index":7}`+"\n"+`{"Index":8,"Topics":["Job"]}`+"\n", w.Body.String())
	require.Equal(t, streamPath+"?brief=true&index=7&namespace=%2A&stale=true&topic=Job&topic=Node good", asked)
	require.Equal(t, http.StatusGone, ask(t, h, "GET", "/ui/live?topic=Job&index=4", "good", nil).Code)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/live?topic=Job", "", nil).Code)
	require.Equal(t, http.StatusBadRequest, ask(t, h, "GET", "/ui/live?"+strings.Repeat("topic=Job&", 21), "good", nil).Code)
}

// TestAPageWithoutTopicsHearsSignsOfLife: it asks the API nothing, needs no rights, and is counted apart from those that are kept up to
// date, so that whoever may not even read takes no place of theirs.
func TestAPageWithoutTopicsHearsSignsOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &Face{Clock: clock.Wall{}, API: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the API was asked") })}
		ctx, leave := context.WithTimeout(t.Context(), 2*beat+beat/2)
		defer leave()
		w := httptest.NewRecorder()
		require.NoError(t, f.live(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost:4646/ui/live", http.NoBody)))
		require.Equal(t, strings.Repeat("{}\n", 3), w.Body.String())

		ctx, leave = context.WithCancel(t.Context())
		defer leave()
		for i := range viewers.MostPages { // each with a token that it invented
			go func() { // ends with ctx
				r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost:4646/ui/live", http.NoBody)
				r.Header.Set("X-Nomad-Token", strconv.Itoa(i))
				_ = f.live(httptest.NewRecorder(), r)
			}()
		}
		synctest.Wait()
		again := httptest.NewRequestWithContext(ctx, "GET", "http://localhost:4646/ui/live", http.NoBody)
		require.Equal(t, http.StatusTooManyRequests, httpapi.Status(f.live(httptest.NewRecorder(), again)))
		_, err := f.enter(again)
		require.NoError(t, err)
		leave()
		synctest.Wait()
		_, err = f.idle.Enter(again, "", "too many")
		require.NoError(t, err)
	})
}

// TestLivePagesAreBounded: one viewer cannot have more pages kept up to date than is fit, and each that is closed makes room.
func TestLivePagesAreBounded(t *testing.T) {
	t.Parallel()
	opened := make(chan struct{}, viewers.MostPages)
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != streamPath { // what the page of a refusal asks
			return
		}
		_, _ = w.Write([]byte("{}\n"))
		opened <- struct{}{}
		<-r.Context().Done()
	}))
	open := func(ctx context.Context, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost:4646/ui/live?topic=Job", http.NoBody)
		w := httptest.NewRecorder()
		cookies.SetToken(w, r, token)
		r.AddCookie(w.Result().Cookies()[0])
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	ctx, leave := context.WithCancel(t.Context())
	var pages sync.WaitGroup
	for range viewers.MostPages {
		pages.Go(func() { open(ctx, "one") }) // ends with ctx
		<-opened
	}
	require.Equal(t, http.StatusTooManyRequests, open(t.Context(), "one").Code)
	pages.Go(func() { open(ctx, "other") }) // ends with ctx
	<-opened
	leave()
	pages.Wait()
	again, end := context.WithCancel(t.Context())
	pages.Go(func() { require.Equal(t, http.StatusOK, open(again, "one").Code) }) // ends with again
	<-opened
	end()
	pages.Wait()
}

// TestTheLabelOfACluster: every page shows it, as text.
func TestTheLabelOfACluster(t *testing.T) {
	t.Parallel()
	f := &Face{Clock: clock.Wall{}, Label: parts.Label{Text: "<staging>", Background: "#b00020", Color: "white"}}
	f.API = httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}}, f)
	body := ask(t, f.API, "GET", "/ui/login", "", nil).Body.String()
	require.Contains(t, body, `<strong id="label" class="label" data-background="#b00020" data-color="white">&lt;staging&gt;</strong>`)
	require.NotContains(t, ask(t, of(http.NotFoundHandler()), "GET", "/ui/login", "", nil).Body.String(), `id="label"`)
}

// TestTheOverviewDrawsHowPoolsWereFilled: those for which claims waited stand first, and what cannot be told leaves the rest as it is.
func TestTheOverviewDrawsHowPoolsWereFilled(t *testing.T) {
	t.Parallel()
	const areas, history = `{"areas": [{"name": "environments", "state": "ok", "says": "12"}]}`, "/v1/metrics/history"
	pools := []string{`{"environment": "<b>", "namespace": "ns", "size": [4], "warm": [1], "claimed": [3], "waiting": [7]}`}
	for i := range 11 {
		pools = append(pools, fmt.Sprintf(`{"environment": "e%d", "size": [2, 2], "warm": [-1, 2], "claimed": [0, 0], "waiting": [0, 0]}`, i))
	}
	slices.Reverse(pools)
	api := fixed{
		attentionPath: {http.StatusOK, areas},
		history:       {http.StatusOK, `{"from": "2026-01-02T03:04:05Z", "step": 60000000000, "pools": [` + strings.Join(pools, ",") + `]}`},
	}
	body := ask(t, of(api), "GET", "/ui/", "good", nil).Body.String()
	inert(t, body)
	_, body, _ = strings.Cut(body, `<section id="fills"`)
	require.Less(t, strings.Index(body, "Claims waited: 7 at once."), strings.Index(body, "2 to 2 warm of 2"))
	require.Contains(t, body, `<a href="/ui/environments/ns~%3Cb%3E"`)
	require.Equal(t, 8, strings.Count(body, `<small>`))
	require.Contains(t, body, "All environments: 4 more")
	api[history] = struct {
		status int
		body   string
	}{http.StatusServiceUnavailable, `{"message": "nobody leads"}`}
	body = ask(t, of(api), "GET", "/ui/", "good", nil).Body.String()
	require.Contains(t, body, "Nothing wants attention.")
	require.Contains(t, body, "nobody leads")
}
