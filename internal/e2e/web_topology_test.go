package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/e2e/large"
)

// serveLarge serves a large cluster until the test ends. What spoils does not let through goes to the agent.
func serveLarge(t *testing.T, cfg large.Config, spoils func(w http.ResponseWriter, r *http.Request) bool) (*large.Cluster, string) {
	t.Helper()
	c := large.New(cfg)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoils == nil || !spoils(w, r) {
			c.Handler.ServeHTTP(w, r)
		}
	}))
	closeLast(t, srv)
	return c, srv.URL
}

// zooming turns the wheel over the map for two seconds, in and out, and counts the frames of each second.
const zooming = `new Promise(done => {
	const map = document.getElementById('topology'), box = map.getBoundingClientRect(), begun = performance.now();
	let frames = 0;
	const turn = () => {
		const now = performance.now() - begun;
		if (now > 2000) return done(frames * 1000 / now);
		frames++;
		map.dispatchEvent(new WheelEvent('wheel', { deltaY: now % 1000 < 500 ? -40 : 40, clientX: box.left + box.width / 3,
			clientY: box.top + box.height / 3, bubbles: true, cancelable: true }));
		requestAnimationFrame(turn);
	};
	requestAnimationFrame(turn);
})`

// TestTheTopologyInABrowser draws ten thousand nodes, of use without a mouse and without eyes. How fast that goes is told, not judged:
// other tests have the machine, too. The goals are one second, and thirty frames a second while it is zoomed; docs/performance.md has
// figures.
func TestTheTopologyInABrowser(t *testing.T) {
	t.Parallel()
	_, site := serveLarge(t, large.Config{Nodes: 10_000, Jobs: 100, Allocations: 20_000}, nil)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(site+"/ui/topology"))
	const drawn = `performance.getEntriesByName('topology-drawn')`
	b.until(drawn + `.length > 0`)
	first := eval[float64](b, drawn+`[0].startTime`)
	b.until(`document.getElementById('topology-said').textContent === 'Nodes: 10000. Groups: 3.'`)
	b.until(`document.getElementById('live').dataset.state === 'live'`)
	frames := eval[float64](b, zooming)
	t.Logf("10,000 nodes are drawn after %.0f ms, and zoomed at %.0f frames a second", first, frames)
	b.accessible()
	b.picture("topology")

	// By keys alone: a node is gone to, told, picked, and shown with what runs there. The address holds all of it.
	b.do(chromedp.Focus(chromedp.CSS("#topology")))
	key := func(name string) {
		_ = eval[bool](b, `document.getElementById('topology').dispatchEvent(new KeyboardEvent('keydown', {key: '`+name+
			`', bubbles: true, cancelable: true}))`)
	}
	for _, name := range []string{"0", "Home", "ArrowRight", "ArrowDown", "PageDown", "End", "Home", "+", "+"} {
		key(name)
	}
	b.until(`/^node-\d+: ready, default, CPU \d+ %, memory \d+ %, \d allocations$/.test(document.getElementById('topology-said').textContent)`)
	told := eval[string](b, `document.getElementById('topology-said').textContent`)
	key("Enter")
	name, _, _ := strings.Cut(told, ":")
	b.until(`document.querySelector('#picked dd a') !== null && document.querySelector('#picked dd a').textContent === '` + name + `'`)
	require.NotZero(t, eval[int](b, `document.querySelectorAll('#picked tbody a[href^="/ui/allocations/"]').length`))
	b.accessible()
	b.picture("topology-picked")
	b.until(`new URLSearchParams(location.search).has('node') && new URLSearchParams(location.search).has('z')`)
	link := eval[string](b, `location.href`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.until(drawn + `.length > 0`)
	require.Equal(t, name, eval[string](b, `document.querySelector('#picked dd a').textContent`))
	require.Equal(t, link, eval[string](b, `new Promise(done => setTimeout(() => done(location.href), 500))`), "the view is the link's")

	// Filters, colours and groups, and the table of the same.
	_ = eval[bool](b, `(() => { const f = document.getElementById('topology-view').elements;
		f.q.value = 'gpu down'; f.group.value = 'class'; f.colour.value = 'health';
		for (const e of [f.q, f.group, f.colour]) e.dispatchEvent(new Event('input', {bubbles: true})); return true })()`)
	b.until(`/^\d+ of 10000 nodes are found\.$/.test(document.getElementById('topology-said').textContent)`)
	b.until(`location.search.includes('q=gpu+down') && location.search.includes('group=class')`)
	found, _, _ := strings.Cut(eval[string](b, `document.getElementById('topology-said').textContent`), " ")
	b.picture("topology-found")
	b.do(chromedp.Click(chromedp.CSS("#topology-table")))
	b.until(`document.readyState === 'complete' && document.querySelectorAll('main table').length === 2`)
	require.Contains(t, eval[string](b, `document.querySelector('main').textContent`), "of "+found+" nodes")
	require.Zero(t, eval[int](b, `[...document.querySelectorAll('main table')[1].rows].slice(1).filter(
		r => !r.textContent.includes('down')).length`))
	b.accessible()
	b.picture("topology-table")

	// From a job's page to the nodes on which it runs: the others are faded, the address says so, and the table has them alone.
	b.open(site, "/ui/jobs/job-00007@default")
	b.do(chromedp.Click(chromedp.CSS(`main a[href="/ui/topology?job=job-00007%40default"]`)))
	b.until(drawn + `.length > 0 && document.getElementById('topology-marks') !== null`)
	b.until(`/^[1-9]\d* of 10000 nodes are found\.$/.test(document.getElementById('topology-said').textContent)`)
	marked := eval[int](b, `document.getElementById('topology-marks').dataset.nodes.split(' ').length`)
	require.Equal(t, marked, eval[int](b, `parseInt(document.getElementById('topology-said').textContent)`))
	b.accessible()
	b.picture("topology-job")
	b.do(chromedp.Click(chromedp.CSS("#topology-table")))
	b.until(`document.readyState === 'complete' && document.querySelectorAll('main table').length === 2`)
	require.Contains(t, eval[string](b, `location.search`), "job=job-00007%40default")
	require.Contains(t, eval[string](b, `document.querySelector('main').textContent`), fmt.Sprintf("of %d nodes", marked))

	b.do(chromedp.Navigate(site+"/ui/topology"), chromedp.EmulateViewport(1280, 860))
	b.do(chromedp.Click(chromedp.CSS("button[name=theme]")))
	b.until(`document.readyState === 'complete' && document.documentElement.dataset.theme === 'dark'`)
	b.do(chromedp.Navigate(site + "/ui/topology?colour=memory&group=datacenter"))
	b.until(drawn + `.length > 0`)
	b.accessible()
	b.picture("topology-dark")
	b.do(chromedp.EmulateViewport(360, 740))
	b.until(`document.documentElement.scrollWidth <= 360`)
	b.picture("topology-phone")
}

// TestTheTopologyByFinger pinches with two fingers and drags with one.
func TestTheTopologyByFinger(t *testing.T) {
	t.Parallel()
	_, site := serveLarge(t, large.Config{Nodes: 500, Jobs: 10, Allocations: 1000}, nil)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(360, 740), chromedp.Navigate(site+"/ui/topology"))
	b.until(`performance.getEntriesByName('topology-drawn').length > 0`)
	_ = eval[bool](b, `(() => { const map = document.getElementById('topology'), box = map.getBoundingClientRect();
		const finger = (type, id, x, y) => map.dispatchEvent(new PointerEvent(type, {pointerId: id, pointerType: 'touch', isPrimary: id === 1,
			clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true}));
		finger('pointerdown', 1, 100, 100); finger('pointerdown', 2, 140, 100);
		finger('pointermove', 1, 60, 100); finger('pointermove', 2, 180, 100);
		finger('pointerup', 1, 60, 100); finger('pointerup', 2, 180, 100); return true })()`)
	b.until(`+new URLSearchParams(location.search).get('z') > 200`)
	require.False(t, eval[bool](b, `new URLSearchParams(location.search).has('node')`), "a pinch picks nothing")
	before := eval[string](b, `new URLSearchParams(location.search).get('x')`)
	_ = eval[bool](b, `(() => { const map = document.getElementById('topology'), box = map.getBoundingClientRect();
		const finger = (type, x, y) => map.dispatchEvent(new PointerEvent(type, {pointerId: 3, pointerType: 'touch', isPrimary: true,
			clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true}));
		finger('pointerdown', 100, 100); finger('pointermove', 60, 100); finger('pointermove', 20, 100); finger('pointerup', 20, 100);
		return true })()`)
	b.until(`new URLSearchParams(location.search).get('x') !== '` + before + `'`)
}

// TestTheTopologyOfABadDay: names with markup that turn, an agent that is slow, answers with errors, or not at all, and no node.
func TestTheTopologyOfABadDay(t *testing.T) {
	t.Parallel()
	var mode atomic.Pointer[string]
	set := func(to string) { mode.Store(&to) }
	set("slow")
	c, site := serveLarge(t, large.Config{Nodes: 3, Jobs: 1, Allocations: 3}, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/ui/topology/data" {
			return false
		}
		switch *mode.Load() {
		case "slow":
			return !clock.Sleep(r.Context(), clock.Wall{}, 1500*time.Millisecond)
		case "fails":
			http.Error(w, "no leader <b>", http.StatusServiceUnavailable)
			return true
		case "cuts":
			panic(http.ErrAbortHandler)
		}
		return false
	})
	const hostile = "<img src=x onerror=document.title=1>\u202Etxt"
	tx := c.Store.Begin(1_000_000)
	tx.PutNode(&drover.Node{
		ID: "ffffffff-0000-4000-8000-000000000001", Name: hostile, NodePool: "p<b>", Datacenter: hostile, Status: drover.NodeStatusReady,
		SchedulingEligibility: drover.NodeEligible,
	})
	tx.Commit()
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(site+"/ui/topology?q="+url.QueryEscape("onerror")))
	b.until(`document.getElementById('topology-said').textContent === '1 of 4 nodes are found.'`)
	b.do(chromedp.Navigate(site + "/ui/topology?node=ffffffff-0000-4000-8000-000000000001"))
	b.until(`document.querySelector('#picked dd a') !== null`)
	require.Equal(t, hostile, eval[string](b, `document.querySelector('#picked dd a').textContent`))
	require.NotEqual(t, "1", eval[string](b, `document.title`))
	b.do(chromedp.Navigate(site + "/ui/topology"))
	for _, step := range []struct{ mode, says string }{
		{"slow", "Nodes: 4. Groups: 4."},
		{"fails", "no leader <b>"},
		{"", "Nodes: 4. Groups: 4."},
		{"cuts", "The agent does not answer: what is shown is not the newest. It is asked again."},
		{"", "Nodes: 4. Groups: 4."},
	} {
		set(step.mode)
		b.until(`document.getElementById('topology-said').textContent.trim() === '` + step.says + `'`)
		b.accessible()
	}

	empty, quiet := serveLarge(t, large.Config{}, nil)
	require.NotNil(t, empty)
	b.do(chromedp.Navigate(quiet + "/ui/topology"))
	b.until(`document.getElementById('topology-said').textContent === 'No node is there yet.'`)
	b.accessible()
	b.do(chromedp.Navigate(quiet + "/ui/topology?view=table"))
	b.until(`document.querySelector('main').textContent.includes('No node is there yet.')`)
	b.accessible()
}
