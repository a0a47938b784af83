package e2e

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

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
	_, err = chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	require.NoError(t, err)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/jobs"))
	// Times are in the zone of who reads them, also when the page was brought up to date, with the exact one on hover.
	const local = `[...document.querySelectorAll('main time')].some((t) => t.title.startsWith(t.dateTime) && t.title.endsWith('UTC+05:30') &&
		Date.parse(t.textContent.replace(' ', 'T') + '+05:30') === Math.floor(Date.parse(t.dateTime) / 1000) * 1000)`
	b.until(local)
	_, _, err = a.nomad().Jobs().Register(rawJob("other", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	b.until(`document.querySelector('main a[href="/ui/jobs/other@default"]') !== null && ` + local)
	for _, step := range []struct{ click, at string }{
		{`tbody a[href="/ui/jobs/seen@default"]`, "/ui/jobs/seen@default"},
		{`tbody a[href^="/ui/allocations/"]`, "/ui/allocations/"},
		{`dl a[href^="/ui/clients/"]`, "/ui/clients/"},
		{`nav a[href="/ui/clients"]`, "/ui/clients"},
		{`nav a[href="/ui/environments"]`, "/ui/environments"},
		{`#more a[href="/ui/servers"]`, "/ui/servers"},
		{`nav a[href="/ui/executions"]`, "/ui/executions"},
		{`nav a[href="/ui/fleet"]`, "/ui/fleet"},
		{`#more a[href="/ui/events"]`, "/ui/events"},
	} {
		if strings.HasPrefix(step.click, "#more") {
			b.do(chromedp.Click(chromedp.CSS("#more summary")))
		}
		b.do(chromedp.Click(chromedp.CSS(step.click)))
		b.until(`location.pathname.startsWith('` + step.at + `') && document.readyState === 'complete'`)
		b.until(`document.querySelector('main h1') !== null`)
		require.Zero(t, eval[int](b, `document.querySelectorAll('.notice').length`), step.at)
	}
	b.until(`document.querySelector('#events a[href="/ui/jobs/seen@default"]') !== null`)

	// On a phone the pages are behind a button, which keys open and close.
	b.do(chromedp.EmulateViewport(360, 740))
	const shown = `document.querySelector('nav a[href="/ui/jobs"]').checkVisibility()`
	require.False(t, eval[bool](b, shown))
	require.Less(t, eval[int](b, `document.querySelector('.bar').offsetHeight`), 60)
	b.do(chromedp.Focus(chromedp.CSS("#menu")))
	b.key("\r")
	b.until(shown + ` && document.getElementById('menu').getAttribute('aria-expanded') === 'true'`)
	b.accessible()
	b.picture("menu-phone")
	b.key("\x1b")
	b.until(`!` + shown + ` && document.activeElement.id === 'menu'`)
	b.key("\r")
	b.key("\t")
	b.until(`document.activeElement.getAttribute('href') === '/ui/'`)
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="/ui/jobs"]`)))
	b.until(`location.pathname === '/ui/jobs' && document.readyState === 'complete'`)
}
