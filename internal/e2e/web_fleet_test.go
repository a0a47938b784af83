package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
)

// dark has the page shown so from now on.
func (b *tab) dark() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS("button[name=theme]")))
	b.until(`document.readyState === 'complete' && document.documentElement.dataset.theme === 'dark'`)
}

// coloured reports how many colours a canvas has, drawn on nothing.
const coloured = `(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)`

// TestTheTimelineOfMachinesInABrowser: a machine that came for work and went is there with its whole life and why it was bought
// and returned. It is drawn and in words, in both themes and on a phone; the address holds the filters.
func TestTheTimelineOfMachinesInABrowser(t *testing.T) {
	t.Parallel()
	a := start(t, fleetAgent(t, "")...)
	c := a.nomad()
	_, _, err := c.Jobs().Register(fleetJob("short", 1, "exit 0"), nil)
	require.NoError(t, err)
	var told fleet.Timeline
	eventually(t, "a machine that went", func() (bool, string) {
		a.fleet("GET", "timeline?since=1h&pool=std", "", &told)
		return len(told.Machines) > 0 && told.Machines[0].State == fleet.InstanceGone, fmt.Sprintf("%+v", told)
	})
	m := told.Machines[len(told.Machines)-1]
	var names []string
	for i, p := range m.Phases {
		names = append(names, string(p.Name))
		require.False(t, p.To.IsZero(), fmt.Sprint(i))
	}
	require.Subset(t, names, []string{"asked", "booting", "active"}, m.Phases)
	require.NotEmpty(t, m.Bought)
	require.NotEmpty(t, m.Reason)

	b, site := openTab(t), "http://"+a.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	for _, theme := range []string{"light", "dark"} {
		b.open(site, "/ui/fleet/timeline?pool=std&since=1h")
		if theme == "dark" {
			b.dark()
		}
		b.until(`document.querySelector('.gantt canvas') !== null`)
		require.GreaterOrEqual(t, eval[int](b, coloured+`(document.querySelector('.gantt canvas'))`), 3)
		require.Contains(t, eval[string](b, `document.querySelector('tbody').textContent`), m.Bought)
		require.Equal(t, "std", eval[string](b, `document.getElementById('pool').value`))
		b.accessible()
		b.picture("fleet-timeline-" + theme)
		b.do(chromedp.EmulateViewport(360, 740))
		require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
		b.accessible()
		b.picture("fleet-timeline-phone-" + theme)
		b.do(chromedp.EmulateViewport(1280, 860))
	}
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="/ui/fleet"]`)))
	// What the day was for: the ledger may not have seen the job, which was done at once.
	b.until(`location.pathname === '/ui/fleet' &&
		/idle|default.short/.test(document.querySelector('#costs-day-job tbody tr')?.lastElementChild.textContent)`)
	b.accessible()
	b.picture("fleet-cost")
	b.open(site, "/ui/fleet/timeline?pool=other")
	b.until(`document.querySelector('main').textContent.includes('No machine was there')`)
}

// TestTheSimulatorInABrowser tries a policy, and sees how it goes; what is wrong with one is said beside what was typed.
func TestTheSimulatorInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/fleet/simulate"))
	b.until(`document.getElementById('policy') !== null`)
	b.accessible()
	tries := func(policy string) {
		b.do(chromedp.SetValue(chromedp.CSS("#policy"), policy), chromedp.SetValue(chromedp.CSS("#length"), "2h"),
			chromedp.Click(chromedp.CSS("#simulator .primary")))
	}
	tries(`{"Name": "std", "Moon": 1}`)
	b.until(`document.querySelector('.notice.bad') !== null && document.querySelector('.notice').textContent.includes('Moon')`)
	require.Contains(t, eval[string](b, `document.getElementById('policy').value`), "Moon")
	tries(`{"Name": "std", "Provider": "loopback", "Zones": ["a"], "Max": 50,
		"Types": [{"Name": "t", "Price": 1, "Capacity": {"CPU": 4000, "MemoryMB": 8000, "DiskMB": 10000}}]}`)
	b.until(`document.querySelectorAll('.chart canvas').length === 2`)
	require.Empty(t, eval[string](b, `document.querySelector('.notice')?.textContent || ''`))
	require.Equal(t, "drover", eval[string](b, `document.querySelector('tbody td').textContent`))
	b.accessible()
	b.picture("simulator")
	b.dark()
	b.until(`document.getElementById('policy') !== null`)
	tries(`{"Name": "std", "Provider": "loopback", "Zones": ["a"], "Max": 50,
		"Types": [{"Name": "t", "Price": 1, "Capacity": {"CPU": 4000, "MemoryMB": 8000, "DiskMB": 10000}}]}`)
	b.until(`document.querySelectorAll('.chart canvas').length === 2`)
	b.accessible()
	b.picture("simulator-dark")
	b.do(chromedp.EmulateViewport(360, 740))
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
}
