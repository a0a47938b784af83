package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/e2e/program"
)

// topTasks are the twelve things for which people open the page: which test does each in a browser, and the pictures that are kept of it.
var topTasks = []struct{ task, test, pictures string }{
	{"what is broken, and since when", "TestTheOverviewLivesInABrowser", "overview-concern overview-phone"},
	{"why does this not run", "TestTheOverviewLivesInABrowser", "not-placed"},
	{"a node died: what was on it, where is it now", "TestANodeThatDiedInABrowser", "node-died node-died-replaced"},
	{"is the control plane well", "TestTheServersInABrowser", "servers doctor"},
	{"run this file, see it come up", "TestAJobWithoutTheCommandLine", "run-planned job"},
	{"the newest version fails: its last words", "TestTheLastWordsOfATask", "task-failed last-words"},
	{"is the canary good; promote, or go back", "TestAJobWithoutTheCommandLine", "job-canary"},
	{"do runners suffice, does anybody wait", "TestRunnersSufficeInABrowser", "environments-waiting environments-enough"},
	{"what did this student's program do", "TestASandboxThatHangsInABrowser", "execution-of-a-student"},
	{"does my environment do what I need", "TestThePlaygroundInABrowser", "play-light play-phone"},
	{"my sandbox hangs", "TestASandboxThatHangsInABrowser", "runner-hangs execution-hangs"},
	{
		"what do machines cost, and with another policy", "TestTheTimelineOfMachinesInABrowser TestTheSimulatorInABrowser",
		"fleet-cost simulator",
	},
}

// TestEveryTopTaskIsPictured: each has its test, which keeps its pictures.
func TestEveryTopTaskIsPictured(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("web_*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, name := range append(files, "web_test.go") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	require.Len(t, topTasks, 12)
	for _, task := range topTasks {
		for test := range strings.FieldsSeq(task.test) {
			require.Contains(t, all.String(), "func "+test+"(t *testing.T)", task.task)
		}
		for picture := range strings.FieldsSeq(task.pictures) {
			require.Contains(t, all.String(), `.picture("`+picture+`")`, task.task)
		}
	}
}

// follows clicks a link that leads to a page below a path, and waits for that.
func (b *tab) follows(selector, path string) {
	b.t.Helper()
	b.press(selector)
	b.until(`location.pathname.startsWith('` + path + `') && document.readyState === 'complete' && document.querySelector('main h1') !== null`)
}

// TestANodeThatDiedInABrowser: one click from the overview are what was on a node that is lost, and where that is now.
func TestANodeThatDiedInABrowser(t *testing.T) {
	t.Parallel()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "s"),
		"server {\n  heartbeat_grace = \"3s\"\n  min_heartbeat_ttl = \"1s\"\n}")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	servers, parent := "servers = [\""+m[1]+"\"]", program.GroupParent()+"-died"
	t.Cleanup(func() {
		if t.Failed() { // it would outlive this
			killGroup(t, parent)
			_ = removeGroup(parent)
		}
	})
	doomedArgs := append([]string{"-client", "-node", "doomed"}, config(t, filepath.Join(t.TempDir(), "doomed"),
		fmt.Sprintf("client {\n  cgroup_parent = %q\n  %s\n}\n", parent, servers))...)
	doomed := start(t, doomedArgs...)
	c := s.nomad()
	_, _, err := c.Jobs().Register(rawJob("web", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	was := allocation(t, c, "web", "running")
	otherArgs := append([]string{"-client", "-node", "other"}, config(t, filepath.Join(t.TempDir(), "other"), clientBlock(servers))...)
	other := start(t, otherArgs...)
	eventually(t, "two nodes", func() (bool, string) {
		nodes, _, err := c.Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 2 && nodes[0].Status == "ready" && nodes[1].Status == "ready", fmt.Sprint(len(nodes))
	})
	b, site := openTab(t), "http://"+s.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open(site, "/ui/")
	doomed.PullThePlug()
	killGroup(t, parent)

	link := `#concerns a[href="/ui/clients/` + was.NodeID + `"]`
	b.until(`document.querySelector('` + link + `') !== null`)
	b.follows(link, "/ui/clients/"+was.NodeID)
	row := `[...document.querySelectorAll('#allocations tbody tr')].find(r => r.textContent.includes('web.group[0]'))`
	replaced := row + `?.querySelector('td:last-child a[href^="/ui/allocations/"]')`
	b.until(row + `?.textContent.includes('lost') && ` + replaced + ` !== null`)
	require.True(t, eval[bool](b, row+`.querySelector('a[href="/ui/jobs/web@default"]') !== null`))
	b.accessible()
	b.picture("node-died")
	now := eval[string](b, replaced+`.getAttribute('href')`)
	b.follows(`#allocations a[href="`+now+`"]`, now)
	b.until(`document.getElementById('state').textContent.includes('It runs, as it should.')`)
	require.Contains(t, eval[string](b, `document.getElementById('state').textContent`), "other")
	require.True(t, eval[bool](b, `document.querySelector('main a[href="/ui/allocations/`+was.ID+`"]') !== null`), "and back")
	b.picture("node-died-replaced")

	_, _, err = c.Jobs().Deregister("web", true, nil)
	require.NoError(t, err)
	back := start(t, doomedArgs...)
	eventually(t, "empty nodes", func() (bool, string) { return emptyNodes(t, s) })
	other.Stop()
	back.Stop()
	require.Empty(t, removeGroup(parent), "control groups left")
}

// TestTheServersInABrowser: one click from the overview is how the control plane does, and one more what the doctor finds.
func TestTheServersInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open("http://"+a.addr, "/ui/")
	b.follows(`.tiles a[href="/ui/servers"]`, "/ui/servers")
	b.until(`/leader/.test(document.querySelector('#servers tbody tr')?.textContent)`)
	b.accessible()
	b.picture("servers")
	b.follows(`main a[href="/ui/doctor"]`, "/ui/doctor")
	b.until(`document.querySelectorAll('main tbody tr').length > 3`)
	b.accessible()
	b.picture("doctor")
}

// TestRunnersSufficeInABrowser: before an exam the pool is too small, which the list of environments says with who waits; a larger size is
// typed, and nobody waits.
func TestRunnersSufficeInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, e := a.native(), execution.Environment{ID: "py", Image: "host", Driver: "raw_exec", PoolSize: 1, MaxRunners: 1}
	_, _, err := c.PutEnvironment(t.Context(), e)
	require.NoError(t, err)
	r, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "py", Wait: time.Minute})
	require.NoError(t, err)
	claimed := make(chan error, 1)
	go func() { // ends with the claim
		_, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "py", Wait: time.Minute})
		claimed <- err
	}()
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open("http://"+a.addr, "/ui/")
	b.follows(`.tiles a[href="/ui/environments"]`, "/ui/environments")
	row := `[...document.querySelector('#environments tbody tr').cells].map(c => c.textContent)`
	b.until(row + `[6] === '1'`)
	b.accessible()
	b.picture("environments-waiting")
	require.NoError(t, c.Release(t.Context(), r.ID)) // somebody ends
	require.NoError(t, <-claimed)
	e.MaxRunners = 0
	_, _, err = c.PutEnvironment(t.Context(), e)
	require.NoError(t, err)
	b.follows(`main tbody a[href="/ui/environments/py"]`, "/ui/environments/py")
	b.do(chromedp.SetValue(chromedp.CSS("#size"), "many"))
	b.press(`form[action$="/size"] button`)
	b.until(`document.querySelector('.notice.bad') !== null && document.getElementById('size').value === 'many'`)
	b.do(chromedp.SetValue(chromedp.CSS("#size"), "3"))
	b.press(`form[action$="/size"] button`)
	b.until(`document.querySelector('.notice.ok') !== null && document.querySelector('#environment dd').textContent === '3 / 3'`)
	b.accessible()
	b.picture("environment-size")
	b.open("http://"+a.addr, "/ui/environments")
	b.until(row + `[2] === '3 / 3' && ` + row + `[6] === '0'`)
	b.picture("environments-enough")
}

// TestASandboxThatHangsInABrowser: a student's runner is found by its label, and what runs there; it is given more time, interrupted, and
// killed; what became of it is told in words. At last the runner is released.
func TestASandboxThatHangsInABrowser(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, r := inRunner(t, a)
	x, err := c.StartExecution(t.Context(), r.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/bin/sh", "-c", `trap 'echo not now' INT; echo begun; while :; do sleep 0.1; done`}, Detach: time.Minute,
	}})
	require.NoError(t, err)
	b, site := openTab(t), "http://"+a.addr
	b.do(chromedp.EmulateViewport(1280, 860))
	b.open(site, "/ui/search?q=student")
	b.follows(`a.hit[href="/ui/runners/`+r.ID+`"]`, "/ui/runners/"+r.ID)
	b.do(chromedp.SetValue(chromedp.CSS("#idle"), "2h"))
	b.press(`form[action$="/extend"] button`)
	b.until(`document.querySelector('.notice.ok') !== null && document.getElementById('idle').value === '2h'`)
	b.accessible()
	b.picture("runner-hangs")
	b.follows(`tbody a[href="/ui/executions/`+x.ID+`"]`, "/ui/executions/"+x.ID)
	b.until(`document.getElementById('stdout').textContent === 'begun\n'`)
	b.press(`form[action$="/interrupt"] button`)
	b.until(`document.querySelector('.notice.ok') !== null && document.getElementById('stdout').textContent.includes('not now')`)
	b.accessible()
	b.picture("execution-hangs")
	b.press(`form[action$="/kill"] button`)
	b.until(`document.querySelector('form.panel strong')?.textContent === '` + x.ID + `'`)
	b.accessible()
	b.press("form.panel button")
	b.until(`document.querySelector('.notice.ok') !== null`)
	b.until(`/It was killed on request/.test(document.getElementById('execution')?.textContent)`)
	b.until(`document.querySelector('form[action$="/kill"]') === null && !document.getElementById('replay').hidden`)
	b.accessible()
	b.picture("execution-of-a-student")
	b.open(site, "/ui/runners/"+r.ID)
	b.press(`form[action$="/release"] button`)
	b.until(`document.querySelector('form.panel strong')?.textContent === '` + r.ID + `'`)
	b.press("form.panel button")
	b.until(`location.pathname === '/ui/runners' && document.querySelector('.notice.ok') !== null`)
	b.until(`document.querySelector('main a[href="/ui/runners/` + r.ID + `"]') === null`)
}

// TestTwoTabs: what one tab did is on the other by itself. What the other's form then asks for is refused or done as things are
// now, and the way back from a form leads to the page and sends nothing again.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	a := dev(t)
	_, _, err := a.nomad().Jobs().Register(rawJob("seen", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	allocation(t, a.nomad(), "seen", "running")
	one, two, site := openTab(t), openTab(t), "http://"+a.addr
	for _, b := range []*tab{one, two} {
		b.do(chromedp.EmulateViewport(1280, 860))
		b.open(site, "/ui/jobs/seen@default")
		b.until(`document.getElementById('live').dataset.state === 'live'`)
	}
	one.press(`form[action$="/stop"] button`)
	one.until(`document.querySelector('form.panel strong') !== null`)
	one.press("form.panel button")
	one.until(`document.querySelector('.notice.ok') !== null`)
	two.until(`document.querySelector('form[action$="/start"]') !== null && document.querySelector('form[action$="/stop"]') === null`)

	// To what the form was answered with, or to the page: nothing is sent. The document is left after it has answered.
	eval[bool](one, `window.here = true; setTimeout(() => history.back()); true`)
	one.until(`window.here === undefined && document.readyState === 'complete'`)
	one.do(chromedp.Navigate(site + "/ui/jobs/seen@default"))
	one.until(`document.querySelector('form[action$="/start"]') !== null && document.querySelector('.notice.ok') === null`)
	two.press(`form[action$="/start"] button`)
	two.until(`document.querySelector('.notice.ok') !== null`)
	one.until(`document.querySelector('form[action$="/stop"]') !== null`)
	versions, _, _, err := a.nomad().Jobs().Versions("seen", false, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, len(versions), 3, "registered, stopped, started")
}

// TestATokenThatIsRevokedInABrowser: a page that is open when its token is revoked shows nothing new, says so and leads to the sign-in.
func TestATokenThatIsRevokedInABrowser(t *testing.T) {
	t.Parallel()
	a := bootstrapped(t, "")
	c := a.nomad()
	_, _, err := c.Jobs().Register(rawJob("seen", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	allocation(t, c, "seen", "running")
	token, _, err := c.ACLTokens().Create(&api.ACLToken{Name: "short", Type: "management"}, nil)
	require.NoError(t, err)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860))
	b.signIn("http://"+a.addr, token.SecretID)
	b.until(`document.getElementById('live').dataset.state === 'live'`)
	b.until(`document.querySelector('main a[href="/ui/jobs/seen@default"]') !== null`)
	_, err = c.ACLTokens().Delete(token.AccessorID, nil)
	require.NoError(t, err)
	_, _, err = c.Jobs().Register(rawJob("secret", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	b.until(`document.querySelector('main .notice.warn') !== null && document.querySelector('main a[href^="/ui/login?next="]') !== null`)
	require.NotContains(t, eval[string](b, `document.body.textContent`), "secret")
	require.False(t, eval[bool](b, `document.querySelector('main a[href="/ui/jobs/seen@default"]') !== null`), "what was shown is gone, too")
	b.accessible()
	b.picture("token-revoked")
}
