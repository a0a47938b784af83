package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// lossy stands between a browser and an agent. Its Close loses all connections, and it can come back at the same address.
type lossy struct {
	*httptest.Server
	address string
	handler http.Handler
	logs    atomic.Int64 // live logs that are being read

	mu      sync.Mutex
	sockets []net.Conn // guarded by mu: websockets, of which the server does not know any more
}

func newLossy(t *testing.T, agent string) *lossy {
	t.Helper()
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", agent },
		FlushInterval: -1,
	}
	l := &lossy{}
	l.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/logs/live") {
			l.logs.Add(1)
			defer l.logs.Add(-1)
		}
		proxy.ServeHTTP(w, r)
	})
	l.Server = httptest.NewUnstartedServer(l.handler)
	l.Config.ConnState = l.follow
	l.Start()
	l.address = l.Listener.Addr().String()
	t.Cleanup(func() { l.lose() })
	return l
}

func (l *lossy) follow(c net.Conn, s http.ConnState) {
	if s != http.StateHijacked {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets = append(l.sockets, c)
}

func (l *lossy) lose() {
	_ = l.Listener.Close()
	l.CloseClientConnections()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.sockets {
		_ = c.Close()
	}
	l.sockets = nil
}

func (l *lossy) back(t testing.TB) {
	t.Helper()
	l.Server = httptest.NewUnstartedServer(l.handler)
	l.Config.ConnState = l.follow
	_ = l.Listener.Close()
	var err error
	l.Listener, err = net.Listen("tcp", l.address)
	require.NoError(t, err)
	l.Start()
}

// TestAnAllocationInABrowser looks at one, follows what it writes, through a lost connection too, and stops it.
func TestAnAllocationInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	script := `echo '<img src=x onerror="document.title=1">' שלום; echo wrong >&2; trap 'seq 1 1000000; echo all' USR1
		trap go=yes USR2; until [ "$go" ]; do sleep 0.1; done; i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.1; done`
	_, _, err := a.nomad().Jobs().Register(rawJob("loud", "service", "/bin/sh", "-c", script), nil)
	require.NoError(t, err)
	id := allocation(t, a.nomad(), "loud", "running").ID
	between := newLossy(t, a.addr)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(between.URL+"/ui/jobs/loud@default"),
		chromedp.Click(chromedp.CSS(`tbody a[href="/ui/allocations/`+id+`"]`)))
	b.until(`document.querySelector('.tabs') !== null && location.pathname.startsWith('/ui/allocations/')`)
	require.Zero(t, eval[int](b, `document.querySelectorAll('.notice').length`))
	require.Contains(t, eval[string](b, `document.body.textContent`), "It runs, as it should.")
	live := `document.getElementById('live').dataset.state`
	b.until(live + ` === 'live'`)
	b.accessible()
	b.picture("allocation")

	eval[bool](b, `document.querySelector('tbody a[href*="/logs"]').click(); true`) // the part may just be replaced
	shown := `document.querySelector('#log pre').textContent`
	b.until(`document.querySelector('#log.live') !== null && ` + shown + `.includes('<img src=x onerror="document.title=1"> שלום')`)
	require.Zero(t, eval[int](b, `document.querySelectorAll('#log img').length`))
	runs, _, err := a.nomad().Allocations().Info(id, nil)
	require.NoError(t, err)
	require.NoError(t, a.nomad().Allocations().Signal(runs, nil, "main", "SIGUSR2")) // only now: the document has the newest lines alone
	b.until(lastTick(shown) + ` >= 3`)
	b.accessible()
	b.picture("logs")

	b.hidesALog(between, shown)
	b.losesNothing(between, shown)

	// A million lines at once: the document stays small.
	eval[bool](b, `window.slowest = 0; new PerformanceObserver((l) => {
		for (const e of l.getEntries()) window.slowest = Math.max(window.slowest, e.duration); }).observe({type: 'longtask'}); true`)
	begun := eval[float64](b, `performance.now()`)
	require.NoError(t, a.nomad().Allocations().Signal(runs, nil, "main", "SIGUSR1"))
	b.until(shown + `.includes('all\n')`)
	took := eval[float64](b, `performance.now()`) - begun
	t.Logf("a million lines after %.0f ms; longest task %.0f ms", took, eval[float64](b, `window.slowest`))
	require.Less(t, eval[int](b, `document.querySelectorAll('#log *').length`), 100)
	require.Less(t, eval[int](b, shown+`.length`), 20_000)

	// Only the lines that are asked for; a paused view stands.
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "99999"))
	b.until(`document.querySelectorAll('#log mark').length > 1 && ` + shown + `.split('\n').every(l => !l || l.includes('99999'))`)
	b.do(chromedp.Focus(chromedp.CSS("#filter")), chromedp.KeyEvent(strings.Repeat("\b", 5)+"tick"))
	b.until(`document.querySelectorAll('#log mark').length > 1 && ` + shown + `.split('\n').every(l => !l || l.includes('tick'))`)
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	b.until(`/new lines: [1-9]/.test(document.getElementById('log-said').textContent)`)
	stands := eval[string](b, shown)
	b.until(`/new lines: [0-9]*[3-9]$/.test(document.getElementById('log-said').textContent)`)
	require.Equal(t, stands, eval[string](b, shown))
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	b.until(shown + ` !== ` + strconv.Quote(stands))

	eval[string](b, `document.getElementById('type').value = 'stderr'`)
	b.do(chromedp.Click(chromedp.CSS("form.actions button")))
	b.until(`document.querySelector('#log.live pre') !== null && ` + shown + `.startsWith('wrong')`) // and what the shell says of the signal

	b.do(chromedp.Click(chromedp.CSS(`.tabs a[href$="/files"]`)))
	for _, name := range []string{"alloc/", "logs/", "main.stderr.0"} {
		b.until(`[...document.querySelectorAll('tbody a')].some(a => a.textContent === '` + name + `')`)
		b.accessible()
		eval[bool](b, `[...document.querySelectorAll('tbody a')].find(a => a.textContent === '`+name+`').click(); true`)
	}
	b.until(`document.querySelector('pre.whole') !== null`)
	require.Contains(t, eval[string](b, `document.querySelector('pre.whole').textContent`), "wrong\n")
	b.accessible()
	b.picture("files")

	b.stopsAllocation()
}

// TestALogFromATimeInABrowser goes to moments of a log that was rotated since: what was written then is shown, and what came after as
// far as one looks. A link leads there, and Follow back to the end. What was written within a second before may be shown too: marks of
// times are that far apart.
func TestALogFromATimeInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	job := rawJob("timed", "service", "/bin/sh", "-c", `trap go=yes USR1; n=0
		wait_for() { go=; until [ "$go" ]; do sleep 0.02; done; }
		while :; do n=$((n+1)); echo "part $n begins"
			seq -f "$n: %.0f" 1 150000; echo "part $n ends"; sleep 1.2; echo "part $n rests"; wait_for; done`)
	job.TaskGroups[0].Tasks[0].LogConfig = &api.LogConfig{MaxFiles: new(20), MaxFileSizeMB: new(1)}
	_, _, err := a.nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	id := allocation(t, a.nomad(), "timed", "running").ID
	runs, _, err := a.nomad().Allocations().Info(id, nil)
	require.NoError(t, err)
	rests := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			return strings.Contains(logs(t, a.nomad(), id, "stdout"), "part "+strconv.Itoa(n)+" rests\n")
		}, 60*time.Second, 100*time.Millisecond)
	}
	rests(1)
	second := time.Now()
	require.NoError(t, a.nomad().Allocations().Signal(runs, nil, "main", "SIGUSR1"))
	rests(2)
	third := time.Now()
	require.NoError(t, a.nomad().Allocations().Signal(runs, nil, "main", "SIGUSR1"))
	rests(3)

	b := openTab(t)
	site := "http://" + a.addr + "/ui/allocations/" + id + "/logs"
	shown := `document.querySelector('#log pre').textContent`
	b.do(chromedp.EmulateViewport(1280, 860),
		chromedp.Navigate(site+"?task=main&since="+url.QueryEscape(second.UTC().Format(time.RFC3339Nano))))
	b.until(`document.querySelector('#log.live') !== null && /^(part 1 rests\n)?part 2 begins\n2: 1\n/.test(` + shown + `)`)
	b.accessible()
	b.picture("logs-from-a-time")
	b.until(`document.getElementById('log-said').textContent.includes('since')`)
	lines := eval[int](b, `Number(document.getElementById('log-said').textContent.match(/Lines: ([\d,]+)/)[1].replaceAll(',', ''))`)
	require.Less(t, lines, 12_000, "it reads as far as one looks")
	for range 60 {
		eval[bool](b, `document.getElementById('log').scrollTop = 1e9; true`)
	}
	b.until(`(() => { document.getElementById('log').scrollTop = 1e9; return ` + shown + `.includes('part 3 rests'); })()`)

	b.do(chromedp.Navigate(site + "?task=main"))
	b.until(`document.querySelector('#log.live') !== null && ` + shown + `.endsWith('part 3 rests')`)
	eval[bool](b, `{ const t = new Date(`+strconv.FormatInt(third.UnixMilli(), 10)+`);
		const field = document.getElementById('since');
		field.value = new Date(t - t.getTimezoneOffset() * 60000).toISOString().slice(0, 23); } true`)
	b.do(chromedp.Click(chromedp.CSS("#go")))
	b.until(`/^(part 2 rests\n)?part 3 begins\n/.test(` + shown + `)`)
	require.Contains(t, eval[string](b, `location.search`), "since=")
	b.do(chromedp.Click(chromedp.CSS("#follow")))
	b.until(shown + `.endsWith('part 3 rests')`)
	require.NotContains(t, eval[string](b, `location.search`), "since=")
	b.searchesALog(shown)
	b.do(chromedp.EmulateViewport(360, 740))
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
	b.picture("logs-phone")
}

// searchesALog finds lines of a log's past that the page does not keep, goes to one, and comes there again by the page's address.
func (b *tab) searchesALog(shown string) {
	b.t.Helper()
	search := func(text string) {
		eval[bool](b, `document.getElementById('search').value = '`+text+`'; document.getElementById('search-log').requestSubmit(); true`)
	}
	said := `document.getElementById('searched').textContent`
	search("2: 777 no such line")
	b.until(said + ` === 'No line has this text.'`)
	search(": 15")
	b.until(said + ` === 'Lines found: 1,000. There may be more.'`)
	require.Equal(b.t, 1000, eval[int](b, `document.querySelectorAll('#found li').length`))
	b.do(chromedp.Click(chromedp.CSS("#search-more")))
	b.until(said + ` === 'Lines found: 2,000. There may be more.'`)
	require.Equal(b.t, 1000, eval[int](b, `document.querySelectorAll('#found li').length`), "the page stays small")
	search("PART 2 ")
	b.until(said + ` === 'Lines found: 3. All of the log was searched.'`)
	require.Equal(b.t, "part 2 begins part 2 ends part 2 rests", eval[string](b,
		`[...document.querySelectorAll('#found a')].map((a) => a.textContent).join(' ')`))
	require.Equal(b.t, 3, eval[int](b, `[...document.querySelectorAll('#found time')].filter((t) => Date.parse(t.dateTime)).length`))
	b.accessible()
	at := `document.querySelector('#log .at')?.textContent`
	b.do(chromedp.Click(chromedp.CSS("#found li:nth-child(2) a")))
	b.until(at + ` === 'part 2 ends\n'`)
	b.until(shown + `.includes('2: 150000\npart 2 ends\npart 2 rests\npart 3 begins\n3: 1\n')`)
	b.accessible()
	b.picture("logs-searched")
	link := eval[string](b, `location.href`)
	require.Contains(b.t, link, "at=")
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.until(at + ` === 'part 2 ends\n' && ` + said + ` === 'Lines found: 3. All of the log was searched.'`)
	b.do(chromedp.Click(chromedp.CSS("#search-close")))
	b.until(`document.getElementById('found').hidden && !location.search.includes('search=')`)
	b.do(chromedp.Click(chromedp.CSS("#follow")))
	b.until(shown + `.endsWith('part 3 rests') && !location.search.includes('at=')`)
}

// hidesALog has a log's page hidden, which gives its connection back, and seen again: nothing of what was written meanwhile is missing.
func (b *tab) hidesALog(between *lossy, shown string) {
	b.t.Helper()
	last := eval[int](b, lastTick(shown))
	_ = eval[bool](b, `Object.defineProperty(document, 'hidden', {value: true, configurable: true}) &&
		document.dispatchEvent(new Event('visibilitychange'))`)
	require.Eventually(b.t, func() bool { return between.logs.Load() == 0 }, 20*time.Second, 10*time.Millisecond)
	_ = eval[bool](b, `delete document.hidden && document.dispatchEvent(new Event('visibilitychange'))`)
	b.until(lastTick(shown) + ` >= ` + strconv.Itoa(last+5))
	require.NotContains(b.t, eval[string](b, shown), "missing")
}

// lastTick is the number of the last line that is shown.
func lastTick(shown string) string {
	return `Number(` + shown + `.match(/tick (\d+)\n?$/)?.[1] ?? 0)`
}

// losesNothing has a log's page lose its connection, which it says, and get it back: what was written meanwhile comes once.
func (b *tab) losesNothing(between *lossy, shown string) {
	b.t.Helper()
	between.lose()
	b.until(`document.getElementById('log-said').textContent.includes('connection is lost')`)
	last := eval[int](b, lastTick(shown))
	between.back(b.t)
	b.until(lastTick(shown) + ` >= ` + strconv.Itoa(last+5))
	b.until(`document.getElementById('log-said').textContent.includes('Lines')`)
	want := 0
	for line := range strings.Lines(eval[string](b, shown)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "tick "); ok {
			if want == 0 {
				first, err := strconv.Atoi(n)
				require.NoError(b.t, err)
				want = first
			}
			require.Equal(b.t, strconv.Itoa(want), n, "no gap, and nothing twice")
			want++
		}
	}
}

// stopsAllocation stops the allocation of a page, and sees the page say so.
func (b *tab) stopsAllocation() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(".tabs a")))
	b.until(`document.querySelector('form[action$="/stop"]') !== null`)
	eval[bool](b, `document.querySelector('form[action$="/stop"] button').click(); true`) // as above
	b.until(`document.querySelector('form.panel strong') !== null`)
	require.Equal(b.t, "loud.group[0]", eval[string](b, `document.querySelector('form.panel strong').textContent`))
	b.accessible()
	b.do(chromedp.Click(chromedp.CSS("form.panel button")))
	b.until(`document.querySelector('.notice.ok') !== null`)
	require.Contains(b.t, eval[string](b, `document.querySelector('.notice.ok').textContent`), "is stopped")
	b.until(`document.getElementById('state').textContent.includes('It was stopped')`) // by itself
	b.until(`document.querySelector('form[action$="/stop"]') === null`)
}

// TestATerminalInABrowser types into a task, and sees programs that cannot begin, end and are cut off.
func TestATerminalInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("typed", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	id := allocation(t, a.nomad(), "typed", "running").ID
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/allocations/"+id+"/terminal"))
	said := func(what string) {
		t.Helper()
		b.until(`document.getElementById('said') !== null && document.getElementById('said').textContent.includes('` + what + `')`)
	}
	b.until(`!document.getElementById('terminal').hidden`)
	loaded := `performance.getEntriesByType('resource').filter(e => e.name.includes('xterm')).length`
	require.Zero(t, eval[int](b, loaded), "it is not loaded yet")
	b.do(chromedp.Click(chromedp.CSS("#open")))
	said("open")
	typed := func(text string) {
		b.until(`document.querySelector('#screen textarea') === document.activeElement`)
		require.True(t, eval[bool](b, `document.execCommand('insertText', false, `+strconv.Quote(text)+`)`))
	}
	runs := func(program string) {
		eval[bool](b, `document.getElementById('command').value = '`+program+`'; document.getElementById('terminal').requestSubmit(); true`)
	}
	typed("echo $((40+2)) grün; exit 3")
	b.do(chromedp.KeyEvent("\r"))
	said("It ended with code 3.")
	b.until(`document.querySelector('.xterm-rows').textContent.replaceAll('\u00a0', ' ').includes('42 grün')`) // drawn a moment later
	b.accessible()
	b.picture("terminal")

	runs("/no/program")
	said("failed to start")
	runs("/bin/cat")
	typed("x")
	b.until(`document.querySelector('.xterm-rows').textContent.startsWith('x')`)
	eval[bool](b, `window.took = 0; {
		const rows = document.querySelector('.xterm-rows');
		let begun;
		document.querySelector('#screen textarea').addEventListener('keydown', () => begun = performance.now(), true);
		new MutationObserver(() => { if (rows.textContent.startsWith('xy')) window.took ||= performance.now() - begun; })
			.observe(rows, {childList: true, subtree: true, characterData: true});
	} true`)
	b.do(chromedp.KeyEvent("y"))
	b.until(`window.took > 0`)
	t.Logf("from a key to its echo on the screen: %.1f ms", eval[float64](b, `window.took`))
	a.Stop()
	b.until(`document.getElementById('said').textContent !== 'open' && !document.getElementById('open').disabled`)
	t.Logf("the agent stopped: %q", eval[string](b, `document.getElementById('said').textContent`))
}
