package e2e

import (
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// below lists a process's children, theirs, and so on.
func below(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range files {
		list, _ := os.ReadFile(name) // a thread that ended has none
		for word := range strings.FieldsSeq(string(list)) {
			child, _ := strconv.Atoi(word) // the kernel's
			all = append(append(all, child), below(child)...)
		}
	}
	return all
}

// TestAPageThatWasAsleepInABrowser: a page that the browser had frozen, and one whose whole computer was asleep, are right a second after
// they woke, though the server was restarted meanwhile: the events since are gone.
func TestAPageThatWasAsleepInABrowser(t *testing.T) {
	t.Parallel()
	args := append([]string{"-server", "-client"}, config(t, t.TempDir(), "")...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	var at atomic.Pointer[string]
	at.Store(&a.addr)
	between := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", *at.Load() },
		FlushInterval: -1,
	})
	closeLast(t, between)
	b := openTab(t, chromedp.Flag("no-first-run", true)) // in a browser of its own, which is stopped
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(between.URL+"/ui/jobs"))
	b.until(`document.getElementById('live').dataset.state === 'live'`)
	call := func(state cdp.SetWebLifecycleStateState, seen bool) {
		t.Helper()
		_, err := chromedp.Call(b.ctx, cdp.SetWebLifecycleState, cdp.SetWebLifecycleStateParams{State: state})
		require.NoError(t, err)
		_, err = chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: seen})
		require.NoError(t, err)
	}
	browser := chromedp.FromContext(b.ctx).Browser.Process()
	require.NotNil(t, browser)
	processes := func(s syscall.Signal) {
		for _, pid := range append(below(browser.Pid), browser.Pid) {
			_ = syscall.Kill(pid, s) // it may have ended
		}
	}
	for _, sleep := range []struct {
		job          string
		begins, ends func()
	}{
		{"frozen", func() { call(cdp.SetWebLifecycleStateStateFrozen, false) }, func() { call(cdp.SetWebLifecycleStateStateActive, true) }},
		{"stopped", func() { processes(syscall.SIGSTOP) }, func() { processes(syscall.SIGCONT) }},
	} {
		sleep.begins()
		a.Stop()
		between.CloseClientConnections() // as the network forgets them
		a = start(t, args...)
		at.Store(&a.addr)
		_, _, err := a.nomad().Jobs().Register(rawJob(sleep.job, "service", "/bin/sleep", "600"), nil)
		require.NoError(t, err)
		allocation(t, a.nomad(), sleep.job, "running")
		sleep.ends()
		right := b.after(`document.querySelector('main a[href="/ui/jobs/` + sleep.job + `@default"]') !== null`)
		require.LessOrEqual(t, right, 1000, sleep.job)
		b.until(`document.getElementById('live').dataset.state === 'live'`)
		t.Logf("%s: right after %d ms", sleep.job, right)
	}
}
