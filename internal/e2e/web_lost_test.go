package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPagesWithoutAConnectionInABrowser has many pages lose their connection at once, without a word, as networks do. Each says so within
// two seconds, also those that show nothing that changes. What was typed stays, a form is not sent into nowhere, and all of them mend by
// themselves.
func TestPagesWithoutAConnectionInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("seen", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	id := allocation(t, a.nomad(), "seen", "running").ID
	carries := openWire(t, a.addr)
	tabs := map[string]*tab{}
	for _, path := range []string{
		"/ui/executions", "/ui/environments", "/ui/fleet/timeline", "/ui/fleet/simulate", "/ui/audit", "/ui/topology", "/ui/play",
		"/ui/volumes", "/ui/namespaces/default", "/ui/jobs/run", "/ui/variable/edit", "/ui/events", "/ui/allocations/" + id + "/logs",
		"/ui/jobs/seen@default", "/ui/login",
	} {
		b := openTab(t)
		tabs[path] = b
		b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+carries.addr+path))
	}
	const (
		state  = `document.getElementById('live')?.dataset.state`
		fields = `[...document.querySelectorAll('main :is(textarea,input:not([type]),input:is([type=text],[type=search],[type=password]))')]`
	)
	for _, b := range tabs {
		b.until(state + ` === 'live'`)
		eval[bool](b, fields+`.forEach((f) => { f.value = 'kept 7'; }) || true`)
	}
	carries.set(false)
	begun := time.Now()
	for path, b := range tabs {
		b.until(state + ` === 'lost'`)
		t.Logf("%s: lost after at most %v", path, time.Since(begun))
	}
	for path, b := range tabs {
		// A form of a page that is lost stays there, and says so.
		if eval[bool](b, `(() => { const form = document.querySelector('main form[method=post]'); if (!form) return false;
			form.noValidate = true; form.requestSubmit(); return true; })()`) && path != "/ui/play" {
			require.Contains(t, eval[string](b, `document.getElementById('live').textContent`), "nothing was sent", path)
		}
	}
	carries.set(true)
	for path, b := range tabs {
		b.until(state + ` === 'live'`)
		require.Equal(t, path, eval[string](b, `location.pathname`))
		require.True(t, eval[bool](b, fields+`.every((f) => f.value === 'kept 7')`), "%s: what was typed stays", path)
	}
	logs := tabs["/ui/allocations/"+id+"/logs"]
	logs.until(`document.getElementById('log-said').textContent.startsWith('Lines')`)
	events := tabs["/ui/events"]
	_, _, err = a.nomad().Jobs().Register(rawJob("later", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	events.until(`document.getElementById('events').textContent.includes('later')`)
}

// TestASlowServerInABrowser: a page whose server is connected but does not answer says that what is seen is old, and since when. It is
// right again once the server answers.
func TestASlowServerInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	var slow atomic.Pointer[chan struct{}]
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", a.addr },
		FlushInterval: -1,
	}
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := slow.Load(); wait != nil && !strings.HasPrefix(r.URL.Path, "/ui/live") {
			select {
			case <-*wait:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	closeLast(t, between)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(between.URL+"/ui/jobs"))
	state := `document.getElementById('live').dataset.state`
	b.until(state + ` === 'live'`)
	answers := make(chan struct{})
	slow.Store(&answers)
	_, _, err := a.nomad().Jobs().Register(rawJob("late", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	b.until(state + ` === 'slow'`)
	require.Contains(t, eval[string](b, `document.getElementById('live').textContent`), "slow: as of")
	b.accessible()
	b.picture("slow")
	slow.Store(nil)
	close(answers)
	b.until(state + ` === 'live'`)
	b.until(`document.querySelector('main tbody').textContent.includes('late')`)
}
