package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/large"
)

// answered is how many milliseconds the server took for the page that is shown.
const answered = `(() => { const n = performance.getEntriesByType('navigation')[0]; return n.responseStart - n.requestStart; })()`

// TestLongListsInABrowser looks at 10,000 jobs, 10,000 nodes and 100,000 allocations, where searching, sorting and paging are links that
// hold all of it. How long a page takes is told, not judged: other tests have the machine, too. The goals are 150 ms, and 100 ms for a
// search.
func TestLongListsInABrowser(t *testing.T) {
	t.Parallel()
	_, site := serveLarge(t, large.Config{Nodes: 10_000, Jobs: 10_000, Allocations: 100_000}, nil)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	shown := func(found string) {
		b.until(`document.readyState === 'complete' && document.querySelector('#list') !== null &&
			document.querySelector('#list').textContent.includes('` + found + `')`)
	}
	took := func(path, found string) {
		b.do(chromedp.Navigate(site + path))
		shown(found)
		t.Logf("%s after %.0f ms", path, eval[float64](b, answered))
	}
	took("/ui/jobs", "10000 found")
	took("/ui/clients", "10000 found")
	took("/ui/allocations", "100000 found")
	took("/ui/jobs?q=job-00+9&status=dead", "100 found")
	took("/ui/clients?q=gpu&status=down", "29 found")
	took("/ui/allocations?q=job-0043&status=failed", "10 found")

	b.do(chromedp.Navigate(site+"/ui/allocations"), chromedp.SetValue(chromedp.CSS("#q"), "JOB-00421 group"),
		chromedp.Click(chromedp.CSS(".search button")))
	shown("10 found")
	b.accessible()
	b.picture("allocations-searched")
	b.do(chromedp.Click(chromedp.CSS(`thead a[href*="sort=name"]`)))
	b.until(`location.search.includes('sort=name') && document.querySelector('th[aria-sort=ascending]') !== null`)
	require.Equal(t, "job-00421.group[0]", eval[string](b, `document.querySelector('#list tbody td:nth-child(2)').textContent`))
	b.do(chromedp.Click(chromedp.CSS(`thead a[href*="sort=-name"]`)))
	b.until(`document.querySelector('th[aria-sort=descending]') !== null && document.readyState === 'complete'`)
	require.Equal(t, "job-00421.group[9]", eval[string](b, `document.querySelector('#list tbody td:nth-child(2)').textContent`))

	// All pages of a search hold each row once.
	b.do(chromedp.Navigate(site + "/ui/jobs?q=job-001&sort=-priority"))
	seen := map[string]bool{}
	for {
		shown("100 found")
		for _, name := range eval[[]string](b, `[...document.querySelectorAll('#list tbody td:first-child')].map(e => e.textContent)`) {
			require.False(t, seen[name], name)
			seen[name] = true
		}
		if !eval[bool](b, `[...document.querySelectorAll('.pager a')].some(e => e.textContent === 'Next page')`) {
			break
		}
		before := eval[string](b, `location.href`)
		b.do(chromedp.Click(chromedp.CSS(".pager a:last-child")))
		b.until(`location.href !== '` + before + `'`)
	}
	require.Len(t, seen, 100)
	b.do(chromedp.Click(chromedp.CSS("button[name=theme]")))
	b.until(`document.readyState === 'complete' && document.documentElement.dataset.theme === 'dark'`)
	b.do(chromedp.Navigate(site+"/ui/clients?status=draining"), chromedp.EmulateViewport(360, 740))
	b.until(`document.querySelector('#list tbody') !== null && document.documentElement.scrollWidth <= 360`)
	b.accessible()
	b.picture("nodes-phone")
}

// TestANodeInABrowser: its metadata is set and removed, it takes no work and does again, is drained and not any more, each told on its
// page, which shows what the machine uses now.
func TestANodeInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("moves", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	id := allocation(t, a.nomad(), "moves", "running").NodeID
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/clients/"+id))
	b.until(`document.querySelectorAll('#usage meter').length >= 2 && document.getElementById('live').dataset.state === 'live'`)
	b.accessible()
	b.picture("node")
	name := eval[string](b, `document.querySelector('h1').textContent`)
	done := func(words string) {
		b.until(`document.readyState === 'complete' && document.querySelector('.notice.ok') !== null &&
			document.querySelector('.notice.ok').textContent === '` + words + `'`)
	}
	const hostile = `<img src=x onerror="document.title=1">`
	b.fills(`form[action$="/meta"]`, map[string]string{"#meta-key": "rack", "#meta-value": hostile})
	done("The metadata is set.")
	b.until(`[...document.querySelectorAll('#meta td')].some(e => e.textContent === '` + hostile + `')`)
	node, _, err := a.nomad().Nodes().Info(id, nil)
	require.NoError(t, err)
	require.Equal(t, hostile, node.Meta["rack"])
	b.press(`#meta tr:has(input[value=rack]) button`)
	asks := func(name string) {
		b.until(`document.querySelector('form.panel strong') !== null && document.querySelector('form.panel strong').textContent === '` +
			name + `'`)
	}
	asks(name + " › rack")
	b.accessible()
	b.press("form.panel button")
	done("The metadata is removed.")

	b.press(`form[action$="/ineligible"] button`)
	done("The node takes no new allocations.")
	b.press(`form[action$="/eligible"] button`)
	done("The node may take allocations.")

	b.press("#drain summary")
	b.until(`document.getElementById('live').dataset.state === 'live'`) // on a busy machine it may be lost, and then sends no form
	b.fills(`form[action$="/drain"]`, map[string]string{"#deadline": "soon"})
	b.until(`document.querySelector('.notice.bad') !== null && document.getElementById('deadline').value === 'soon'`)
	b.accessible()
	b.fills(`form[action$="/drain"]`, map[string]string{"#deadline": "2h", "input[name=system]": ""})
	asks(name)
	b.accessible()
	b.picture("node-drain")
	b.press("form.panel button")
	done("The node is drained.")
	b.until(`document.querySelector('#steer form:is([action$="/cancel"], [action$="/eligible"])') !== null`)
	b.picture("node-draining")
	said := map[string]string{"cancel": "The node is not drained any more.", "eligible": "The node may take allocations."}
	what := eval[string](b, `{ const form = document.querySelector('#steer form:is([action$="/cancel"], [action$="/eligible"])');
		form.querySelector('button').click(); form.action.split('/').pop() }`) // at once: the drain may just end
	done(said[what])
	b.until(`document.querySelector('#state .status.ok') !== null`)
}
