package e2e

import (
	"context"
	_ "embed"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/axe/axe.min.js
var axe string

// tab is a tab of a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context // chromedp keeps the tab in it
}

// openTab starts Chromium, until the test ends.
func openTab(t *testing.T, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "the tests need a browser: make deps")
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(more, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true), chromedp.UserDataDir(t.TempDir()))...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(alloc)
	t.Cleanup(closeTab)
	return &tab{t, ctx}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// until waits until an expression of JavaScript holds, in whatever document the tab shows by then.
func (b *tab) until(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && holds // a document that is just replaced answers nothing
	}, 20*time.Second, 20*time.Millisecond, expression)
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return v
}

// accessible has axe look at the page.
func (b *tab) accessible() {
	b.t.Helper()
	_ = eval[bool](b, axe+";true")
	found := eval[[]string](b, `axe.run().then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact))
		.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join('; ')))`)
	require.Empty(b.t, found)
}

// picture keeps what the page looks like, where DROVER_SCREENSHOTS names a folder.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("DROVER_SCREENSHOTS")
	if folder == "" {
		return
	}
	image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), image, 0o644))
}

// TestThePlaygroundInABrowser makes an environment and runs programs, as who opens the page for the first time.
func TestThePlaygroundInABrowser(t *testing.T) {
	t.Parallel()
	site := "http://" + dev(t).addr
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(site+"/ui/play"))
	b.until(`location.pathname === '/ui/play'`)
	b.accessible()
	b.picture("play-empty")
	b.do(chromedp.Click(chromedp.CSS("main form button")))
	b.until(`document.getElementById('share') !== null && !document.getElementById('share').hidden`)
	b.until(`performance.getEntriesByName('first-contentful-paint').length > 0`)
	t.Logf("first paint after %.0f ms", eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))

	b.do(chromedp.Click(chromedp.CSS("#run")))
	b.until(`document.querySelector('#facts dd.ok, #problem .notice') !== null`)
	require.Equal(t, "hello world\n", eval[string](b, `document.getElementById('stdout').textContent`))
	require.Contains(t, eval[string](b, `document.getElementById('stderr').textContent`), "I am process")
	b.accessible()
	b.picture("play-light")

	// What a program writes stays text; streams come as they are written, and Stop ends it.
	b.do(chromedp.SetValue(chromedp.CSS("#command"), `echo '<img src=x onerror="document.title=1">'; sleep 600`),
		chromedp.Click(chromedp.CSS("#run")))
	b.until(`document.getElementById('stdout').textContent.includes('<img')`)
	require.Zero(t, eval[int](b, `document.getElementById('stdout').children.length`))
	b.do(chromedp.Click(chromedp.CSS("#stop")))
	b.until(`!document.getElementById('run').disabled`)

	// A shared link holds the program.
	b.do(chromedp.SetValue(chromedp.CSS("#command"), "echo shared ünd >&2; exit 3"), chromedp.Click(chromedp.CSS("#add")),
		chromedp.Click(chromedp.CSS("#share")))
	b.until(`location.hash.length > 20`)
	link := eval[string](b, `location.href`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.until(`document.getElementById('command').value === 'echo shared ünd >&2; exit 3'`)
	require.Equal(t, 2, eval[int](b, `document.getElementById('files').children.length`))
	b.do(chromedp.Click(chromedp.CSS("#run")))
	b.until(`document.querySelector('#facts dd.bad') !== null`)
	require.Equal(t, "shared ünd\n", eval[string](b, `document.getElementById('stderr').textContent`))

	b.do(chromedp.Click(chromedp.CSS("button[name=theme]")))
	b.until(`document.documentElement.dataset.theme === 'dark' && document.getElementById('share') !== null`)
	b.do(chromedp.Click(chromedp.CSS("#run")))
	b.until(`document.querySelector('#facts dd.ok') !== null`)
	b.accessible()
	b.picture("play-dark")
	b.do(chromedp.EmulateViewport(360, 740))
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
	b.picture("play-phone")
}

// TestSigningInInABrowser asks an agent that wants a token.
func TestSigningInInABrowser(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-32-characters-or-more!"
	a := start(t, append([]string{"-dev"}, config(t, "", `api_token = "`+token+`"`)...)...)
	b := openTab(t)
	b.do(chromedp.Navigate("http://" + a.addr + "/ui/play"))
	b.do(chromedp.Click(chromedp.CSS("main a")), chromedp.WaitVisible(chromedp.CSS("#token")),
		chromedp.SendKeys(chromedp.CSS("#token"), "wrong\r"))
	b.until(`document.querySelector('.notice.bad') !== null`)
	b.accessible()
	b.picture("login")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	b.until(`location.pathname === '/ui/play' && document.querySelector('form.panel') !== null`)
	require.Empty(t, eval[string](b, `document.cookie`), "no script reads it")
	require.Equal(t, 403, eval[int](b, `fetch('/v1/environments').then(r => r.status === 401 ? 403 : r.status)`), "the API reads no cookies")
	u, err := url.Parse(eval[string](b, `location.href`))
	require.NoError(t, err)
	require.Equal(t, a.addr, u.Host)
}

// TestTheListsInABrowser follows links from the jobs to a node.
func TestTheListsInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("seen", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		all, _, err := a.nomad().Jobs().Allocations("seen", false, nil)
		return err == nil && len(all) == 1 && all[0].ClientStatus == "running"
	}, 30*time.Second, 50*time.Millisecond)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/jobs"))
	look := func(name string) {
		b.until(`document.querySelector('main h1') !== null`)
		require.Zero(t, eval[int](b, `document.querySelectorAll('.notice').length`), name)
		b.accessible()
		b.picture(name)
		b.do(chromedp.Click(chromedp.CSS("button[name=theme]")))
		b.until(`document.readyState === 'complete' && document.documentElement.dataset.theme === 'dark'`)
		b.accessible()
		b.picture(name + "-dark")
		b.do(chromedp.Click(chromedp.CSS("button[name=theme]")))
		b.until(`document.readyState === 'complete' && document.documentElement.dataset.theme === 'light'`)
	}
	look("jobs")
	for _, step := range []struct{ click, at, name string }{
		{`tbody a[href="/ui/jobs/seen@default"]`, "/ui/jobs/seen@default", "job"},
		{`tbody a[href^="/ui/allocations/"]`, "/ui/allocations/", "allocation"},
		{`dl a[href^="/ui/clients/"]`, "/ui/clients/", "node"},
		{`nav a[href="/ui/clients"]`, "/ui/clients", "nodes"},
		{`nav a[href="/ui/environments"]`, "/ui/environments", "environments"},
		{`#more a[href="/ui/servers"]`, "/ui/servers", "servers"},
		{`nav a[href="/ui/executions"]`, "/ui/executions", "executions"},
		{`nav a[href="/ui/fleet"]`, "/ui/fleet", "fleet"},
		{`#more a[href="/ui/events"]`, "/ui/events", "events"},
	} {
		if strings.HasPrefix(step.click, "#more") {
			b.do(chromedp.Click(chromedp.CSS("#more summary")))
		}
		b.do(chromedp.Click(chromedp.CSS(step.click)))
		b.until(`location.pathname.startsWith('` + step.at + `') && document.readyState === 'complete'`)
		look(step.name)
	}
	b.until(`document.querySelector('#events a[href="/ui/jobs/seen@default"]') !== null`)
}
