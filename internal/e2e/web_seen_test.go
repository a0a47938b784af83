package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// TestWhatAnAllocationUsesInABrowser: an allocation's and its node's page draw what is used, with the numbers in words.
func TestWhatAnAllocationUsesInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("busy", "service", "/bin/sh", "-c", "while :; do :; done"), nil)
	require.NoError(t, err)
	one := allocation(t, a.nomad(), "busy", "running")
	b, site := openTab(t), "http://"+a.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	for name, path := range map[string]string{"used-allocation": "/ui/allocations/" + one.ID, "used-node": "/ui/clients/" + one.NodeID} {
		b.open(site, path)
		b.until(`document.querySelectorAll('.past .spark canvas').length === 2`)
		b.until(`/CPU: now [\d.]+ %, at most [\d.]+ % in (\d\ds|[1-9])/.test(document.querySelector('.past .spark').getAttribute('aria-label'))`)
		b.accessible()
		b.picture(name)
	}
}

// TestADrainIsTriedInABrowser: before a node is drained its page says what would become of its work.
func TestADrainIsTriedInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("web", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	one := allocation(t, a.nomad(), "web", "running")
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open("http://"+a.addr, "/ui/clients/"+one.NodeID)
	_ = eval[bool](b, `document.getElementById('drain').open = true; document.querySelector('form[action$="/drain"] button').click(); true`)
	b.until(`document.querySelector('form.panel')?.textContent.includes('1 would find no room')`)
	b.accessible()
	b.picture("drain-tried")
	n, _, err := a.nomad().Nodes().Info(one.NodeID, nil)
	require.NoError(t, err)
	require.False(t, n.Drain, "nothing is done yet")
}

// TestTwoChangeAPoolInABrowser: of two people who see the same size the second hears what the first one made it, what they typed is there
// still, and they may insist.
func TestTwoChangeAPoolInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c := a.native()
	_, _, err := c.PutEnvironment(t.Context(), execution.Environment{ID: "py", Image: "host", Driver: "raw_exec", PoolSize: 1})
	require.NoError(t, err)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open("http://"+a.addr, "/ui/environments/py")
	b.do(chromedp.SetValue(chromedp.CSS("#size"), "3"))
	_, err = c.ResizePool(t.Context(), "py", 2, nil) // somebody else
	require.NoError(t, err)
	press := func() { _ = eval[bool](b, `document.querySelector('form[action$="/size"]').requestSubmit(); true`) }
	press()
	b.until(`document.querySelector('.notice.bad')?.textContent.includes('poolSize is 2, not 1')`)
	require.Equal(t, "3", eval[string](b, `document.getElementById('size').value`))
	b.accessible()
	b.picture("pool-changed")
	env, err := c.Environment(t.Context(), "py")
	require.NoError(t, err)
	require.Equal(t, 2, env.PoolSize)
	press()
	b.until(`document.querySelector('.notice.ok') !== null`)
	env, err = c.Environment(t.Context(), "py")
	require.NoError(t, err)
	require.Equal(t, 3, env.PoolSize)
}
