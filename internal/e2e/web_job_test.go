package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// press clicks what a selector finds, also in a part of the page that may just be replaced.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.until(`document.readyState === 'complete' && document.querySelector(` + strconv.Quote(selector) + `) !== null`)
	_ = eval[bool](b, `document.querySelector(`+strconv.Quote(selector)+`).click() || true`)
}

// fills fills the fields of a form, ticks its boxes, and sends it, all at once: the part of the page that it is in may just be replaced.
func (b *tab) fills(form string, fields map[string]string) {
	b.t.Helper()
	b.until(`document.readyState === 'complete' && document.querySelector(` + strconv.Quote(form) + `) !== null`)
	values, err := json.Marshal(fields)
	require.NoError(b.t, err)
	_ = eval[bool](b, `{ const form = document.querySelector(`+strconv.Quote(form)+`);
		for (const [name, value] of Object.entries(`+string(values)+`)) {
			const field = form.querySelector(name);
			if (field.type === 'checkbox') field.checked = true; else field.value = value;
		}
		form.requestSubmit(); } true`)
}

// plans has a job file planned.
func (b *tab) plans(source string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS("#source"), source), chromedp.Click(chromedp.CSS("button[name=plan]")))
}

// TestAJobWithoutTheCommandLine: the example of a service is planned, run, updated with a canary, promoted and scaled, its logs are read
// and its terminal is used, in a browser alone. What is wrong with a job file is told beside what was typed.
func TestAJobWithoutTheCommandLine(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/jobs/service.nomad.hcl")
	require.NoError(t, err)
	example := strings.Replace(string(text), `min_healthy_time = "5s"`, `min_healthy_time = "1s"`, 1)
	a := dev(t)
	b, site := openTab(t), "http://"+a.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open(site, "/ui/jobs")
	b.press(`main a[href="/ui/jobs/run"]`)
	b.until(`location.pathname === '/ui/jobs/run' && document.readyState === 'complete'`)
	b.plans(strings.Replace(example, "count = 2", "count = = 2", 1))
	b.until(`document.querySelector('.notice.bad') !== null`)
	require.Contains(t, eval[string](b, `document.querySelector('.notice.bad').textContent`), "job.hcl:17")
	require.Contains(t, eval[string](b, `document.getElementById('source').value`), "count = = 2")
	b.accessible()
	b.plans(example)
	b.until(`document.querySelector('#planned tbody') !== null`)
	require.Equal(t, "web2", eval[string](b, `[...document.querySelector('#planned tbody tr').cells].slice(0, 2).map(
		c => c.textContent).join('')`))
	b.accessible()
	b.picture("run-planned")
	b.press("button[name=run]")
	running := func(n int) {
		t.Helper()
		b.until(`location.pathname === '/ui/jobs/web@default' && [...document.querySelectorAll('main tr')].filter(
			r => r.textContent.includes('running') && r.querySelector('a[href^="/ui/allocations/"]') !== null).length === ` + strconv.Itoa(n))
	}
	running(2)
	newest := func(status string, healthy int) {
		t.Helper()
		eventually(t, "a deployment", func() (bool, string) {
			d, _, err := a.nomad().Jobs().LatestDeployment("web", nil)
			if err != nil || d == nil {
				return false, fmt.Sprint(err)
			}
			return d.Status == status && d.TaskGroups["web"].HealthyAllocs >= healthy, fmt.Sprintf("%s %+v", d.Status, d.TaskGroups["web"])
		})
	}
	newest("successful", 2)
	b.press(`.tabs a[href$="/definition"]`)
	b.press(`main a[href^="/ui/jobs/run?"]`)
	b.until(`location.pathname === '/ui/jobs/run' && document.getElementById('source') !== null && document.readyState === 'complete'`)
	source := eval[string](b, `document.getElementById('source').value`)
	require.Contains(t, source, `# A service`, "it is what was typed, with its comments")
	source = strings.Replace(source, `= "hello"`, `= "good morning"`, 1)
	source = strings.Replace(source, "max_parallel     = 1", "max_parallel = 1\n    canary = 1", 1)
	b.plans(source)
	b.until(`document.querySelector('#planned tbody') !== null && document.querySelector('#planned').textContent.includes('good morning')`)
	b.press("button[name=run]")
	running(3) // the canary beside the others
	b.until(`document.querySelector('form[action$="/promote"] button') !== null`)
	b.until(`/running/.test(document.querySelector('main').textContent) && [...document.querySelectorAll('main table')].some(
		t => t.textContent.includes('Canaries') || t.textContent.includes('canar'))`)
	b.picture("job-canary")
	b.accessible()
	newest("running", 1)
	b.press(`form[action$="/promote"] button`)
	b.until(`document.querySelector('.notice.ok') !== null &&
		document.querySelector('.notice.ok').textContent === 'The deployment is promoted.'`)
	newest("successful", 2)
	running(2)
	_ = eval[bool](b, `{ const count = document.getElementById('count0'); // at once: the part may be replaced
		count.value = '3'; count.form.requestSubmit(); } true`)
	running(3)
	b.picture("job")

	b.looksInto(a, site, allocation(t, a.nomad(), "web", "running").ID)
}

// looksInto types into the terminal of an allocation of the example, and reads what its server logs.
func (b *tab) looksInto(a *agent, site, id string) {
	b.t.Helper()
	b.press(`main a[href^="/ui/allocations/` + id + `"]`)
	b.until(`location.pathname === '/ui/allocations/` + id + `'`)
	b.press(`.tabs a[href$="/terminal"]`)
	b.until(`document.getElementById('terminal') !== null && !document.getElementById('terminal').hidden &&
		document.readyState === 'complete'`)
	b.do(chromedp.Click(chromedp.CSS("#open")))
	b.until(`document.querySelector('#screen textarea') !== null && document.querySelector('#screen textarea') === document.activeElement`)
	require.True(b.t, eval[bool](b, `document.execCommand('insertText', false, 'cat local/index.html')`))
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector('.xterm-rows').textContent.replaceAll('\u00a0', ' ').includes('good morning from')`)
	b.picture("job-terminal")
	require.True(b.t, eval[bool](b, `document.execCommand('insertText', false, 'exit')`))
	b.do(chromedp.KeyEvent("\r"))
	b.until(`document.getElementById('said').textContent.includes('It ended with code 0.')`)

	info, _, err := a.nomad().Allocations().Info(id, nil)
	require.NoError(b.t, err)
	port := info.AllocatedResources.Shared.Ports[0]
	eventually(b.t, "a task that listens", func() (bool, string) { // it runs as soon as it began
		c, err := (&net.Dialer{}).DialContext(b.t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port.Value))
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
	for _, path := range []string{"/", "/index.html", "/nothing", "/"} {
		r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port.Value)+path, http.NoBody)
		require.NoError(b.t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(b.t, err)
		require.NoError(b.t, answer.Body.Close())
	}
	b.do(chromedp.Navigate(site + "/ui/allocations/" + id + "/logs?type=stderr"))
	b.until(`document.querySelector('#log pre') !== null && document.querySelector('#log pre').textContent.includes('GET /nothing HTTP/1.1')`)
	b.picture("job-logs")
}

// TestTheLastWordsOfATask: from a job that fails, two clicks lead to why and to what its task wrote last.
func TestTheLastWordsOfATask(t *testing.T) {
	t.Parallel()
	a := dev(t)
	job := rawJob("fails", "batch", "/bin/sh", "-c", "echo last words >&2; exit 3")
	job.TaskGroups[0].RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	job.TaskGroups[0].ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	_, _, err := a.nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	alloc := allocation(t, a.nomad(), "fails", "failed")
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open("http://"+a.addr, "/ui/jobs/fails@default")
	b.press(`main a[href="/ui/allocations/` + alloc.ID + `"]`)
	b.until(`location.pathname.startsWith('/ui/allocations/') && document.querySelector('main').textContent.includes('3')`)
	b.accessible()
	b.picture("task-failed")
	b.press(`tbody a[href*="/logs"]`)
	b.until(`document.querySelector('#log pre') !== null || document.querySelector('#log') !== null`)
	if !eval[bool](b, `document.querySelector('#log').textContent.includes('last words')`) { // it opened with stdout
		_ = eval[string](b, `document.getElementById('type').value = 'stderr'`)
		b.press("form.actions button")
	}
	b.until(`document.querySelector('#log pre') !== null && document.querySelector('#log pre').textContent.includes('last words')`)
	b.picture("last-words")
}
