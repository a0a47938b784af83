package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// echoTimes has a terminal's page note when a key went down, was sent, came back, and was drawn.
const echoTimes = `{
	window.times = [];
	let now = null;
	const Plain = WebSocket;
	window.WebSocket = class extends Plain {
		constructor(...args) { super(...args); this.addEventListener('message', () => { if (now) now.back ||= performance.now(); }); }
		send(data) { if (now) now.sent ||= performance.now(); super.send(data); }
	};
	addEventListener('keydown', () => { now = {down: performance.now()}; times.push(now); }, true);
	new MutationObserver(() => { if (now && now.back) now.drawn ||= performance.now(); })
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
// figures are told, not judged: other tests have the machine, too. A browser adds two of its frames: it hears nothing until it has drawn
// the key, and draws the echo with the next one.
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
		b := openTab(t) // a page with an open terminal asks before it is left
		b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+page))
		b.until(`document.getElementById('terminal') !== null && !document.getElementById('terminal').hidden`)
		eval[bool](b, echoTimes)
		eval[bool](b, `document.getElementById('command').value = '/bin/cat'; document.getElementById('terminal').requestSubmit(); true`)
		b.until(`document.querySelector('#screen textarea') !== null && document.querySelector('#screen textarea') === document.activeElement`)
		const keys = 60
		for i := range keys {
			b.do(chromedp.KeyEvent(string(rune('a' + i%26))))
			b.until(`times.length > 0 && times.at(-1).drawn > 0`)
		}
		median := func(from, to string) float64 {
			return eval[float64](b, `times.map(t => t.`+to+` - t.`+from+`).sort((a, b) => a - b)[Math.floor(times.length / 2)]`)
		}
		t.Logf("%s: median of %d keys: sent after %.1f ms, back after %.1f, drawn after %.1f, %.1f in all", name, keys,
			median("down", "sent"), median("sent", "back"), median("back", "drawn"), median("down", "drawn"))
	}
}
