package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// inRunner claims a runner of an environment of this machine, without a sandbox.
func inRunner(t testing.TB, a *agent) (*client.Client, execution.Runner) {
	t.Helper()
	c, err := client.New("http://" + a.addr)
	require.NoError(t, err)
	_, _, err = c.PutEnvironment(t.Context(), execution.Environment{ID: "py", Image: "host", Driver: "raw_exec", PoolSize: 1})
	require.NoError(t, err)
	r, err := c.Claim(t.Context(), execution.ClaimRequest{
		Environment: "py", Wait: time.Minute, IdleTimeout: time.Hour, Labels: map[string]string{"student": "<b>42"},
	})
	require.NoError(t, err)
	return c, r
}

// TestAnExecutionInABrowser looks at a program that runs: what it writes is shown as it writes it, through a lost connection too; then its
// receipt, and the same again with its pauses.
func TestAnExecutionInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, r := inRunner(t, a)
	x, err := c.StartExecution(t.Context(), r.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/bin/sh", "-c", `printf 'grün \033[31m<b>\033[0m \a שלום\n'; read line; echo 10%; sleep 1; printf '10%%\r100%%\n'
			read line; echo end >&2; exit 3`},
		Stdin: true, Detach: time.Minute,
	}})
	require.NoError(t, err)
	between := newLossy(t, a.addr)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate(between.URL+"/ui/environments"))
	for _, step := range []struct{ click, at, name string }{
		{`tbody a[href="/ui/environments/py"]`, "/ui/environments/py", "environment"},
		{`tbody a[href="/ui/runners/` + r.ID + `"]`, "/ui/runners/" + r.ID, "runner"},
		{`tbody a[href="/ui/executions/` + x.ID + `"]`, "/ui/executions/" + x.ID, "execution"},
	} {
		b.until(`document.querySelector('` + step.click + `') !== null`)
		eval[bool](b, `document.querySelector('`+step.click+`').click(); true`) // the part may just be replaced
		b.until(`location.pathname === '` + step.at + `' && document.readyState === 'complete'`)
		if step.name == "environment" {
			b.until(`document.querySelectorAll('.chart canvas').length === 4`)
			b.until(`document.querySelector('#claims ~ .wide tbody td').textContent === '1'`)
		}
		b.accessible()
		b.picture(step.name)
	}
	const out = `document.getElementById('stdout').textContent`
	b.until(out + ` === 'grün <b> \u2407 שלום\n'`)
	require.Zero(t, eval[int](b, `document.getElementById('stdout').children.length`))
	between.lose()
	b.until(`document.getElementById('said').textContent.includes('No connection')`)
	require.NoError(t, c.SendStdin(t.Context(), x.ID, strings.NewReader("go\n"), false))
	between.back(t)
	b.until(out + `.endsWith('10%\n100%\n')`)
	require.NoError(t, c.SendStdin(t.Context(), x.ID, strings.NewReader("go\n"), true))
	b.until(`document.querySelector('#execution dd.bad') !== null && document.querySelector('#execution dd.bad').textContent === '3'`)
	b.until(`document.getElementById('stderr').textContent === 'end\n' && !document.getElementById('replay').hidden`)
	b.accessible()
	b.picture("execution-ended")
	b.replays(out)

	b.do(chromedp.EmulateViewport(360, 740))
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
	b.picture("execution-phone")
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Click(chromedp.CSS("button[name=theme]")))
	b.until(`document.documentElement.dataset.theme === 'dark' && !document.getElementById('replay').hidden`)
	b.accessible()
	b.picture("execution-dark")
	require.Equal(t, 2, eval[int](b, `fetch(location.pathname + '/cast').then(r => r.text()).then(t => JSON.parse(t.split('\n')[0]).version)`))
}

// replays plays what an execution wrote: the pause between its lines is there, and can be gone to.
func (b *tab) replays(out string) {
	b.t.Helper()
	eval[bool](b, `window.seen = []; new MutationObserver(() => seen.push([performance.now(), `+out+`]))
		.observe(document.getElementById('stdout'), {childList: true, characterData: true, subtree: true});
		document.getElementById('speed').value = '2'; document.getElementById('play').click(); true`)
	b.until(`document.getElementById('play').textContent === 'Replay' && document.getElementById('stderr').textContent === 'end\n'`)
	paused := eval[float64](b, `(() => {
		const first = seen.find(([, text]) => text.endsWith('\n10%\n')), last = seen.find(([, text]) => text.endsWith('100%\n'));
		return last[0] - first[0]; })()`)
	require.InDelta(b.t, 500, paused, 200, "a second, twice as fast")
	eval[bool](b, `(() => { const s = document.getElementById('seek'); s.value = 0; s.dispatchEvent(new Event('input')); return true; })()`)
	require.NotContains(b.t, eval[string](b, out), "10%")
	require.Empty(b.t, eval[string](b, `document.getElementById('stderr').textContent`))
	b.do(chromedp.Click(chromedp.CSS("#end")))
	b.until(out + `.endsWith('100%\n')`)
}

// TestAFloodInABrowser: two pages look at a program that writes as fast as it can, one of which takes nothing. The program comes to its end
// as fast as without them, a line of 100 MB does not stop the page, which says what it missed, and keys are heard meanwhile.
func TestAFloodInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, r := inRunner(t, a)
	flood := func() (execution.Execution, error) {
		return c.StartExecution(t.Context(), r.ID, execution.Request{Spec: execution.Spec{
			Argv: []string{
				"/bin/sh", "-c",
				`read line; head -c 100000000 /dev/zero | tr '\0' x; for i in 1 2 3 4; do seq 1 1000000; done; echo last`,
			},
			Stdin: true, Detach: time.Minute,
		}})
	}
	ends := func(x execution.Execution) time.Duration {
		begun := time.Now()
		require.NoError(t, c.SendStdin(t.Context(), x.ID, strings.NewReader("go\n"), true))
		ended, err := c.WaitExecution(t.Context(), x.ID)
		require.NoError(t, err)
		require.Zero(t, ended.Receipt.ExitCode)
		return time.Since(begun)
	}
	alone, err := flood()
	require.NoError(t, err)
	t.Logf("128 MB that nobody looks at: %v", ends(alone))

	x, err := flood()
	require.NoError(t, err)
	stuck, err := c.Observe(t.Context(), x.ID, execution.Offsets{}) // it reads nothing
	require.NoError(t, err)
	defer stuck.Close()
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/executions/"+x.ID))
	b.until(`document.getElementById('said').textContent.includes('as it writes it')`)
	eval[bool](b, `window.slowest = 0; new PerformanceObserver((l) => {
		for (const e of l.getEntries()) window.slowest = Math.max(window.slowest, e.duration); }).observe({type: 'longtask'}); true`)
	t.Logf("128 MB that a page shows, and another does not take: %v", ends(x))
	b.until(`document.getElementById('stdout').textContent.endsWith('1000000\nlast\n')`)
	b.until(`!document.getElementById('replay').hidden`)
	t.Logf("longest task %.0f ms; %s", eval[float64](b, `window.slowest`),
		eval[string](b, `document.getElementById('stdout-note').textContent`))
	require.Less(t, eval[int](b, `document.getElementById('stdout').textContent.length`), 65<<10)
	require.Contains(t, eval[string](b, `document.getElementById('stdout-note').textContent`), "MiB")
	b.picture("execution-flood")
}

// TestARunnerInABrowser looks at a runner's files, uploads some, and types into it.
func TestARunnerInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, r := inRunner(t, a)
	require.NoError(t, c.WriteFile(t.Context(), r.ID, execution.FileChange{Path: "folder/<b>.txt"},
		strings.NewReader("<script>grün</script>\n")))
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/runners/"+r.ID))
	b.do(chromedp.Click(chromedp.CSS(`.tabs a[href$="/files"]`)))
	for _, name := range []string{"folder/", "<b>.txt"} {
		b.until(`[...document.querySelectorAll('tbody a')].some(a => a.textContent === '` + name + `')`)
		b.accessible()
		b.picture("runner-files")
		eval[bool](b, `[...document.querySelectorAll('tbody a')].find(a => a.textContent === '`+name+`').click(); true`)
	}
	b.until(`document.querySelector('pre.whole') !== null && document.querySelector('pre.whole').textContent === '<script>grün</script>\n'`)
	file := filepath.Join(t.TempDir(), "up load.txt")
	require.NoError(t, os.WriteFile(file, []byte("sent"), 0o644))
	b.do(chromedp.Navigate("http://"+a.addr+"/ui/runners/"+r.ID+"/files?path=folder"),
		chromedp.SetUploadFiles(chromedp.CSS("#upload"), []string{file}), chromedp.Click(chromedp.CSS("form.actions button")))
	b.until(`[...document.querySelectorAll('tbody a')].some(a => a.textContent === 'up load.txt')`)
	b.do(chromedp.Click(chromedp.CSS(`.tabs a[href$="/terminal"]`)))
	b.until(`document.getElementById('terminal') !== null && !document.getElementById('terminal').hidden`)
	b.do(chromedp.Click(chromedp.CSS("#open")))
	b.until(`document.querySelector('#screen textarea') !== null && document.querySelector('#screen textarea') === document.activeElement`)
	require.True(t, eval[bool](b, `document.execCommand('insertText', false, 'echo $((40+2)) $(cat "folder/up load.txt"); exit 4')`))
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector('.xterm-rows').textContent.replaceAll('\u00a0', ' ').includes('42 sent')`)
	b.until(`document.getElementById('said').textContent.includes('It ended with code 4.')`)
	b.accessible()
	b.picture("runner-terminal")
	require.NoError(t, c.Release(t.Context(), r.ID))
	b.do(chromedp.Navigate("http://" + a.addr + "/ui/runners/" + r.ID + "/files"))
	b.until(`document.querySelector('.notice') !== null`)
	b.accessible()
}
