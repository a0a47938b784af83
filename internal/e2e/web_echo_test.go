package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// echoTimes has a terminal's page note when a key went down, was sent, came back, stood in the document, and was painted. It asks for no
// frame while it waits: a browser that has one to draw holds back what comes.
const echoTimes = `{
	window.times = [];
	let now = null;
	const Plain = WebSocket;
	window.WebSocket = class extends Plain {
		constructor(...args) { super(...args); this.addEventListener('message', () => { if (now) now.back ||= performance.now(); }); }
		send(data) { if (now) now.sent ||= performance.now(); super.send(data); }
	};
	addEventListener('keydown', () => { now = {down: performance.now()}; times.push(now); }, true);
	new MutationObserver(() => {
		if (!now || !now.back || now.drawn) return;
		const mine = now, after = new MessageChannel();
		mine.drawn = performance.now();
		after.port1.onmessage = () => { mine.painted = performance.now(); };
		after.port2.postMessage(0); // the terminal changes the document in a frame: the next task comes after it was painted
	})
		.observe(document.getElementById('screen'), {childList: true, subtree: true, characterData: true});
	true
}`

// echoes is the median of how long a key's way to a runner's terminal and back takes without a browser.
func echoes(t *testing.T, c *client.Client, runner string) time.Duration {
	t.Helper()
	s, err := c.Execute(t.Context(), runner, execution.Request{Spec: execution.Spec{Argv: []string{"/bin/cat"}, TTY: true, Stdin: true}})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Next(t.Context()) // started
	require.NoError(t, err)
	took := make([]time.Duration, 101)
	for i := range took {
		begun := time.Now()
		require.NoError(t, s.Write(t.Context(), []byte("a")))
		_, err := s.Next(t.Context())
		require.NoError(t, err)
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// TestKeysEchoInABrowser measures how long after a key its echo is on the screen, in a task and in a runner, and without a browser. The
// figures are told, not judged: other tests have the machine, too.
func TestKeysEchoInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("typed", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	c, r := inRunner(t, a)
	agents := echoes(t, c, r.ID)
	t.Logf("without a browser: %v", agents)
	for name, page := range map[string]string{
		"task": "/ui/allocations/" + allocation(t, a.nomad(), "typed", "running").ID + "/terminal", "runner": "/ui/runners/" + r.ID + "/terminal",
	} {
		const keys = 60
		b := openTab(t) // a page with an open terminal asks before it is left
		b.types("http://"+a.addr+page, keys)
		median := b.betweenKeys
		t.Logf("%s: median of %d keys: sent after %.1f ms, back after %.1f, in the document after %.1f; %.1f from key to document, %.1f to paint",
			name, keys, median("down", "sent"), median("sent", "back"), median("back", "drawn"), median("down", "drawn"), median("down", "painted"))
	}
}

// types opens a terminal with cat in it, and types keys, one after the other's echo was painted, not in step with the browser's frames.
func (b *tab) types(page string, keys int) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(page))
	b.until(`document.getElementById('terminal') !== null && !document.getElementById('terminal').hidden`)
	eval[bool](b, echoTimes)
	eval[bool](b, `document.getElementById('command').value = '/bin/cat'; document.getElementById('terminal').requestSubmit(); true`)
	b.until(`document.querySelector('#screen textarea') !== null && document.querySelector('#screen textarea') === document.activeElement`)
	for i := range keys {
		b.do(chromedp.KeyEvent(string(rune('a' + i%26))))
		b.until(`times.length > 0 && times.at(-1).painted > 0`)
		eval[bool](b, `new Promise(done => setTimeout(() => done(true), Math.random() * 20))`)
	}
}

// betweenKeys is the median of the milliseconds between two moments of a key.
func (b *tab) betweenKeys(from, to string) float64 {
	b.t.Helper()
	return eval[float64](b, `times.map(t => t.`+to+` - t.`+from+`).sort((a, b) => a - b)[Math.floor(times.length / 2)]`)
}

// BenchmarkKeysInABrowser is how long it takes from a key in a runner's terminal until its echo is in the document, and is painted.
func BenchmarkKeysInABrowser(b *testing.B) {
	a := dev(b)
	_, r := inRunner(b, a)
	for b.Loop() {
		window := openTab(b, chromedp.Flag("no-first-run", true)) // in a browser of its own
		window.types("http://"+a.addr+"/ui/runners/"+r.ID+"/terminal", 200)
		b.ReportMetric(window.betweenKeys("down", "drawn"), "ms-to-document")
		b.ReportMetric(window.betweenKeys("down", "painted"), "ms-to-paint")
	}
}

// BenchmarkALogInABrowser is how fast a page follows a log of lines of a hundred bytes that is written as fast as it can be.
func BenchmarkALogInABrowser(b *testing.B) {
	const size = 200 << 20
	a := dev(b)
	job := rawJob("fast", "service", "/bin/sh", "-c", fmt.Sprintf(`echo ready; trap go=yes USR1; until [ "$go" ]; do sleep 0.02; done
		yes 'level=info msg="a line of a log, of a hundred bytes with its end, as servers write them" request=0123456789' |
		head -c %d; echo; echo done; sleep 600`, size))
	job.TaskGroups[0].Tasks[0].LogConfig = &api.LogConfig{MaxFiles: new(30), MaxFileSizeMB: new(10)}
	job.TaskGroups[0].EphemeralDisk = &api.EphemeralDisk{SizeMB: new(500)}
	_, _, err := a.nomad().Jobs().Register(job, nil)
	require.NoError(b, err)
	id := allocation(b, a.nomad(), "fast", "running").ID
	runs, _, err := a.nomad().Allocations().Info(id, nil)
	require.NoError(b, err)
	for b.Loop() {
		window := openTab(b, chromedp.Flag("no-first-run", true)) // in a browser of its own
		window.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/allocations/"+id+"/logs?task=main"))
		shown := `document.querySelector('#log.live pre')?.textContent`
		window.until(shown + ` === 'ready'`)
		eval[bool](window, `window.slowest = 0; new PerformanceObserver((l) => {
			for (const e of l.getEntries()) window.slowest = Math.max(window.slowest, e.duration); }).observe({type: 'longtask'}); true`)
		begun := time.Now()
		require.NoError(b, a.nomad().Allocations().Signal(runs, nil, "main", "SIGUSR1"))
		window.until(shown + `.endsWith('done')`)
		b.ReportMetric(size/1e6/time.Since(begun).Seconds(), "MB/s")
		b.ReportMetric(eval[float64](window, `window.slowest`), "ms-longest-task")
	}
}
