package e2e

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/cluster"
)

// wire carries connections to an agent, and can go dead without a word, as networks do.
type wire struct {
	addr string

	mu   sync.Mutex
	dead chan struct{} // guarded by mu: nil while it carries; closed when it carries again
}

// openWire carries until the test ends.
func openWire(t *testing.T, to string) *wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{addr: ln.Addr().String()}
	var carried sync.WaitGroup
	var dialer net.Dialer
	t.Cleanup(func() {
		w.set(true)
		_ = ln.Close()
		carried.Wait()
	})
	carried.Go(func() { // ends with the listener
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := dialer.DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			end := sync.OnceFunc(func() { _, _ = near.Close(), far.Close() })
			context.AfterFunc(t.Context(), end)
			carried.Go(func() { defer end(); w.carry(near, far) })
			carried.Go(func() { defer end(); w.carry(far, near) })
		}
	})
	return w
}

func (w *wire) carry(from io.Reader, to io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		dead := w.dead
		w.mu.Unlock()
		if dead != nil {
			<-dead
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// set has the wire carry, or not.
func (w *wire) set(carries bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case carries && w.dead != nil:
		close(w.dead)
		w.dead = nil
	case !carries && w.dead == nil:
		w.dead = make(chan struct{})
	}
}

// after is how many milliseconds it takes until an expression of JavaScript holds, by the browser's clock.
func (b *tab) after(expression string) int {
	b.t.Helper()
	return eval[int](b, `new Promise(done => { const begun = performance.now(); const look = () => { if (`+expression+
		`) done(Math.round(performance.now() - begun)); else setTimeout(look, 20); }; look(); })`)
}

// TestTheOverviewLivesInABrowser: work that finds no place is told with its cause, and a connection that goes dead is shown
// within two seconds and mends. A page that was asleep is right within a second.
func TestTheOverviewLivesInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	carries := openWire(t, a.addr)
	native, err := client.New("http://" + a.addr)
	require.NoError(t, err)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+carries.addr+"/"))
	b.until(`location.pathname === '/ui/' && document.querySelectorAll('.tiles li').length >= 5`)
	b.until(`document.getElementById('live').dataset.state === 'live'`)
	b.until(`document.getElementById('concerns').textContent.includes('Nothing wants attention')`)
	b.accessible()
	b.picture("overview-well")

	job := rawJob("stuck", "service", "/bin/sleep", "600")
	job.Constraints = []*api.Constraint{api.NewConstraint("${node.class}", "=", "nowhere")}
	_, _, err = a.nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	const told = `document.querySelector('#concerns a[href="/ui/jobs/stuck@default/evaluations"]') !== null`
	t.Logf("work without a place is told after %d ms", b.after(told))
	b.accessible()
	b.picture("overview-concern")

	carries.set(false)
	lost := b.after(`document.getElementById('live').dataset.state === 'lost'`)
	b.accessible()
	b.picture("overview-lost")
	require.LessOrEqual(t, lost, 2000+500, "two seconds, on a busy machine")
	carries.set(true)
	t.Logf("a dead connection is told after %d ms, and mends %d ms after the network", lost,
		b.after(`document.getElementById('live').dataset.state === 'live'`))

	_ = eval[bool](b, `Object.defineProperty(document, 'hidden', {value: true, configurable: true}) &&
		document.dispatchEvent(new Event('visibilitychange'))`)
	b.until(`document.getElementById('live').dataset.state === 'paused'`)
	_, _, err = a.nomad().Jobs().Deregister("stuck", true, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := native.Attention(t.Context())
		return err == nil && now.State == cluster.OK
	}, 20*time.Second, 50*time.Millisecond)
	require.True(t, eval[bool](b, told), "a hidden page is left alone")
	_ = eval[bool](b, `delete document.hidden && document.dispatchEvent(new Event('visibilitychange'))`)
	right := b.after(`!(` + told + `)`)
	require.LessOrEqual(t, right, 1000)
	t.Logf("a page that was asleep is right after %d ms", right)

	// A click leads to the cause.
	_, _, err = a.nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	b.until(told)
	b.press(`#concerns a[href="/ui/jobs/stuck@default/evaluations"]`)
	b.until(`location.pathname === '/ui/jobs/stuck@default/evaluations' && document.readyState === 'complete'`)
	require.Contains(t, eval[string](b, `document.querySelector('main tbody').textContent`), "${node.class} = nowhere")
	b.picture("not-placed")
	b.do(chromedp.EmulateViewport(360, 740), chromedp.Navigate("http://"+carries.addr+"/ui/"))
	b.until(`document.getElementById('live').dataset.state === 'live'`)
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
	b.picture("overview-phone")
}
