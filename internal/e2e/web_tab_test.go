package e2e

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/axe/axe.min.js
var axe string

// tab is a tab of a real browser.
type tab struct {
	t   testing.TB
	ctx context.Context // chromedp keeps the tab in it
}

// shared is the browser that all tests have their tabs in, each with cookies of its own. It is there while a test uses it.
var shared struct {
	mu    sync.Mutex
	users int             // guarded by mu
	ctx   context.Context // guarded by mu: of the browser
	stop  func()          // guarded by mu
}

// chromium is a browser, which begins with the first tab.
func chromium(t testing.TB, more ...chromedp.ExecAllocatorOption) (ctx context.Context, stop func()) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "the tests need a browser: make deps")
	folder, err := os.MkdirTemp("", "chromium-")
	require.NoError(t, err)
	alloc, end := chromedp.NewExecAllocator(context.Background(), append(more, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true), chromedp.UserDataDir(folder))...)
	ctx, closes := chromedp.NewContext(alloc)
	return ctx, func() {
		closes()
		end()
		_ = os.RemoveAll(folder) // it is below a folder that goes, too
	}
}

// openTab opens a tab until the test ends, in the shared browser, or in one of its own that is started with more.
func openTab(t testing.TB, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	if len(more) > 0 {
		ctx, stop := chromium(t, more...)
		t.Cleanup(stop)
		require.NoError(t, chromedp.Do(ctx)) // it begins
		return &tab{t, ctx}
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.users == 0 {
		shared.ctx, shared.stop = chromium(t)
		require.NoError(t, chromedp.Do(shared.ctx)) // it begins
	}
	shared.users++
	ctx, closeTab := chromedp.NewContext(shared.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		closeTab()
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.users--; shared.users == 0 {
			shared.stop()
		}
	})
	require.NoError(t, chromedp.Do(ctx)) // a context that ends would close what it begins
	return &tab{t, ctx}
}

// do does what a person would. A step waits for what it is about, for two minutes: a part of the page that is replaced may never show it.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// until waits until an expression of JavaScript holds, in whatever document the tab shows by then.
func (b *tab) until(expression string) {
	b.t.Helper()
	eventually(b.t, expression, func() (bool, string) {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && holds, fmt.Sprint(err) // a document that is just replaced answers nothing
	})
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
	b.axe("{}")
}

// drawn has axe look at what depends on how the page is drawn: the rest is that of the same document in other colours or another width.
func (b *tab) drawn() {
	b.t.Helper()
	b.axe(`{runOnly: ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-in-text-block']}`)
}

func (b *tab) axe(options string) {
	b.t.Helper()
	if !eval[bool](b, `'axe' in window`) {
		_ = eval[bool](b, axe+";true")
	}
	found := eval[[]string](b, `axe.run(Object.assign({resultTypes: ['violations'], elementRef: false}, `+options+`)).then(
		r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact))
		.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join('; ')))`)
	if len(found) > 0 {
		b.t.Errorf("%s: %s", eval[string](b, `location.href`), strings.Join(found, "\n"))
	}
}

// picture keeps what the page looks like, where DROVER_SCREENSHOTS names a folder: as PNG, or in the formats of DROVER_SCREENSHOT_FORMATS.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder, formats := os.Getenv("DROVER_SCREENSHOTS"), cmp.Or(os.Getenv("DROVER_SCREENSHOT_FORMATS"), "png")
	if folder == "" {
		return
	}
	for format := range strings.SplitSeq(formats, ",") {
		of := cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormat(format)}
		if format != "png" {
			of.Quality = new(int64(80))
		}
		image, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
			shot, err := cdp.Call(ctx, t, cdppage.CaptureScreenshot, of)
			if err != nil {
				return nil, err
			}
			return shot.Data, nil
		})
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+"."+format), image, 0o644))
	}
}
