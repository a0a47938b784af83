package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

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
	b.until(`document.querySelectorAll('.chart canvas').length === 2 || document.querySelector('.notice') !== null`)
	require.Empty(t, eval[string](b, `document.querySelector('.notice')?.textContent || ''`))
	require.Equal(t, "drover", eval[string](b, `document.querySelector('tbody td').textContent`))
	b.accessible()
	b.picture("simulator")
	b.do(chromedp.EmulateViewport(360, 740))
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
}
