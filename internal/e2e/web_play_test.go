package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// TestTypingInThePlayground types to a program that runs, line by line and in a terminal, ends its input and stops it.
func TestTypingInThePlayground(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c, r := inRunner(t, a)
	require.NoError(t, c.Release(t.Context(), r.ID))
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/play"))
	b.until(`document.getElementById('modes') !== null && !document.getElementById('modes').hidden`)
	runs := func(mode, command string) {
		t.Helper()
		b.until(`!document.getElementById('run').disabled`)
		eval[bool](b, `document.getElementById('mode').value = '`+mode+`'; document.getElementById('command').value = `+strconv.Quote(command)+`;
			document.getElementById('stdin').value = 'given\n'; document.getElementById('run').click(); true`)
	}
	says := func(stream, text string) {
		t.Helper()
		b.until(`document.getElementById('` + stream + `').textContent === ` + strconv.Quote(text))
	}
	ends := func(tone string) {
		t.Helper()
		b.until(`document.querySelector('#facts dd.` + tone + `') !== null && document.getElementById('typing').hidden`)
	}
	runs("given", `cat; echo "no more" >&2`)
	ends("ok")
	says("stdout", "given\n")
	says("stderr", "no more\n")

	runs("typed", `while read line; do echo "<b>$line"; echo "$line" | wc -c >&2; done; echo end; exit 3`)
	says("stdout", "<b>given\n")
	b.until(`document.activeElement === document.getElementById('line')`)
	b.accessible()
	b.do(chromedp.SendKeys(chromedp.CSS("#line"), "schön\r"))
	says("stdout", "<b>given\n<b>schön\n")
	b.do(chromedp.SendKeys(chromedp.CSS("#line"), "two"), chromedp.Click(chromedp.CSS("#send")))
	says("stdout", "<b>given\n<b>schön\n<b>two\n")
	says("stderr", "6\n7\n4\n")
	b.picture("play-typed")
	b.do(chromedp.Click(chromedp.CSS("#eof")))
	ends("bad")
	says("stdout", "<b>given\n<b>schön\n<b>two\nend\n")

	runs("typed", `cat; sleep 600`)
	says("stdout", "given\n")
	b.do(chromedp.Click(chromedp.CSS("#stop")))
	ends("bad")

	runs("terminal", `tty; read x; stty size; exit 4`)
	screen := `document.querySelector('.xterm-rows').textContent.replaceAll('\u00a0', ' ')`
	b.until(`document.querySelector('.xterm-rows') !== null && ` + screen + `.includes('/dev/pts/')`)
	b.accessible()
	b.picture("play-terminal")
	b.do(chromedp.EmulateViewport(360, 740))
	require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360)
	b.picture("play-terminal-phone")
	b.do(chromedp.KeyEvent("x\r"))
	ends("bad")
	narrow := eval[string](b, screen)
	require.Regexp(t, `\d+ \d\d`, narrow, "the size that it has by now")
	require.Empty(t, eval[string](b, `document.getElementById('problem').textContent`))
	require.Eventually(t, func() bool {
		left, err := c.Runners(t.Context(), "py", "from=playground")
		return err == nil && len(left) == 0
	}, 20*time.Second, 50*time.Millisecond, "runners are thrown away")
}

// TestThePlaygroundOfWhoMayOnlyRun: a token that may claim and execute, and nothing else, types to a program.
func TestThePlaygroundOfWhoMayOnlyRun(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-dev"}, config(t, "", "acl {\n  enabled = true\n}\n")...)...)
	root, _, err := a.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	a.token = root.SecretID
	native, err := client.New("http://"+a.addr, client.WithToken(root.SecretID))
	require.NoError(t, err)
	_, _, err = native.PutEnvironment(t.Context(), execution.Environment{ID: "py", Image: "host", Driver: "raw_exec", PoolSize: 1})
	require.NoError(t, err)
	_, err = a.nomad().ACLPolicies().Upsert(&api.ACLPolicy{
		Name: "run", Rules: `namespace "default" { capabilities = ["claim-runner", "execute"] }`,
	}, nil)
	require.NoError(t, err)
	runner, _, err := a.nomad().ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"run"}}, nil)
	require.NoError(t, err)
	b := openTab(t)
	b.do(chromedp.EmulateViewport(1280, 860), chromedp.Navigate("http://"+a.addr+"/ui/login?next=/ui/play"),
		chromedp.WaitVisible(chromedp.CSS("#token")), chromedp.SendKeys(chromedp.CSS("#token"), runner.SecretID+"\r"))
	b.until(`document.getElementById('modes') !== null && !document.getElementById('modes').hidden`)
	b.accessible()
	b.picture("play-only-run")
	b.do(chromedp.SendKeys(chromedp.CSS("#environment"), "py"))
	eval[bool](b, `document.getElementById('mode').value = 'typed'; document.getElementById('run').click(); true`)
	b.until(`document.getElementById('stdout').textContent === 'hello world\n'`)
	b.until(`document.querySelector('#facts dd.ok') !== null`)
	require.Empty(t, eval[string](b, `document.getElementById('problem').textContent`))
	b.until(`!document.getElementById('run').disabled`) // the server has closed the connection, too
	eval[bool](b, `document.getElementById('environment').value = 'nothing'; document.getElementById('run').click(); true`)
	b.until(`document.querySelector('#problem .notice') !== null`)
}
