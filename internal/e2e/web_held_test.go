package e2e

import (
	"context"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// holds presses a key and holds it for some repeats: each of its events (down, what it writes, up) goes to what has the focus by then.
// after is called behind each.
func (b *tab) holds(key rune, repeats int, after func()) {
	b.t.Helper()
	once := kb.Encode(key)
	down, up := once[:len(once)-1], once[len(once)-1]
	events := down
	for range repeats {
		again := *down[0]
		again.AutoRepeat = new(true)
		events = append(append(events, &again), down[1:]...)
	}
	for _, e := range append(events, up) {
		b.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *e)
			return chromedp.Void{}, err
		})
		after()
	}
}

// notes counts how often an element of the page says something.
func (b *tab) notes(id, words string) {
	b.t.Helper()
	eval[bool](b, `window.noted = 0; new MutationObserver(() => {
		if (document.getElementById('`+id+`').textContent === `+strconv.Quote(words)+`) noted++;
	}).observe(document.getElementById('`+id+`'), {childList: true}); true`)
}

// TestAKeyThatEndsAProgramStartsNoOther: whoever ends a program by Enter still holds that key when it has ended. Once the button that
// starts one had the focus by then, and what the key wrote pressed it.
func TestAKeyThatEndsAProgramStartsNoOther(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, r := inRunner(t, a)
	b, site := openTab(t), "http://"+a.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	typed := `document.querySelector('#screen textarea') !== null && document.querySelector('#screen textarea') === document.activeElement`
	for _, repeats := range []int{0, 3} {
		b.open(site, "/ui/runners/"+r.ID+"/terminal")
		b.until(`!document.getElementById('terminal').hidden`)
		b.do(chromedp.Click(chromedp.CSS("#open")))
		b.until(typed)
		b.notes("said", "opening")
		require.True(t, eval[bool](b, `document.execCommand('insertText', false, 'exit 4')`))
		b.holds('\r', repeats, func() {
			b.until(`noted > 0 || document.getElementById('said').textContent.includes('It ended with code 4.')`)
		})
		require.Zero(t, eval[int](b, `noted`), "another is open after %d repeats", repeats)
		require.True(t, eval[bool](b, `document.activeElement.id === 'said'`))
		b.do(chromedp.KeyEvent("\t\r")) // who wants another has it
		b.until(`noted === 1`)
		b.until(typed)
		b.notes("said", "opening")
		require.True(t, eval[bool](b, `document.execCommand('insertText', false, 'exit')`))
		b.do(chromedp.KeyEvent("\r")) // a page with an open terminal asks before it is left
		b.until(`document.getElementById('said').textContent.includes('It ended with code 0.')`)
	}
	require.NoError(t, c.Release(t.Context(), r.ID))
	b.open(site, "/ui/play")
	b.until(`document.getElementById('modes') !== null && !document.getElementById('modes').hidden`)
	starting := eval[string](b, `document.getElementById('said').dataset.starting`)
	for mode, ready := range map[string]string{
		"typed":    `document.getElementById('stdout').textContent === 'ready\n' && document.activeElement.id === 'line'`,
		"terminal": typed + ` && document.querySelector('.xterm-rows').textContent.includes('ready')`,
	} {
		eval[bool](b, `document.getElementById('mode').value = '`+mode+`';
			document.getElementById('stdin').value = '';
			document.getElementById('command').value = 'echo ready; read x; exit 4'; document.getElementById('run').click(); true`)
		b.until(ready)
		b.notes("said", starting)
		b.holds('\r', 3, func() { b.until(`noted > 0 || document.querySelector('#facts dd.bad') !== null`) })
		require.Zero(t, eval[int](b, `noted`), "it ran again: "+mode)
		require.True(t, eval[bool](b, `document.activeElement.id === 'results'`))
	}
	b.accessible()
}
