package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/hashicorp/cap/oidc"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// signIn signs in with a token, and waits for the page.
func (b *tab) signIn(site, token string) {
	b.t.Helper()
	b.do(chromedp.Navigate(site+"/ui/login?next=%2Fui%2Fjobs"), chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	b.until(`location.pathname === '/ui/jobs' && document.readyState === 'complete'`)
}

// open goes to a page of the site.
func (b *tab) open(site, path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(site + path))
	b.until(`document.readyState === 'complete' && document.querySelector('main h1') !== null`)
}

// key presses one.
func (b *tab) key(keys string, options ...chromedp.KeyOption) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys, options...))
}

// populated is a cluster with access control that has something of everything, and the pages that show it.
func populated(t *testing.T) (a *agent, pages map[string]string) {
	t.Helper()
	a = bootstrapped(t, "audit {\n  enabled = true\n}\n")
	c := a.nomad()
	job := rawJob("seen", "service", "/bin/sleep", "600")
	job.TaskGroups[0].Services = []*api.Service{{Name: "found", Provider: "nomad", Tags: []string{"<b>tag"}}}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	alloc := allocation(t, c, "seen", "running")
	stuck := rawJob("stuck", "service", "/bin/sleep", "600")
	stuck.Constraints = []*api.Constraint{api.NewConstraint("${node.class}", "=", "nowhere")}
	answer, _, err := c.Jobs().Register(stuck, nil)
	require.NoError(t, err)
	_, err = c.Quotas().Register(&api.QuotaSpec{Name: "small", Limits: []*api.QuotaLimit{{
		Region: "global", RegionLimit: &api.QuotaResources{CPU: new(1000), MemoryMB: new(512)},
	}}}, nil)
	require.NoError(t, err)
	_, err = c.Namespaces().Register(&api.Namespace{Name: "team", Description: "\u202E<b>team", Quota: "small"}, nil)
	require.NoError(t, err)
	_, _, err = c.Variables().Create(&api.Variable{Path: "app/db", Items: api.VariableItems{"user": "root", "password": "<b>s3cret"}}, nil)
	require.NoError(t, err)
	_, err = c.ACLPolicies().Upsert(&api.ACLPolicy{Name: "look", Rules: `namespace "default" { policy = "read" }`}, nil)
	require.NoError(t, err)
	token, _, err := c.ACLTokens().Create(&api.ACLToken{Name: "<i>ci", Type: "client", Policies: []string{"look"}}, nil)
	require.NoError(t, err)
	native, err := client.New("http://"+a.addr, client.WithToken(a.token))
	require.NoError(t, err)
	_, _, err = native.PutEnvironment(t.Context(), execution.Environment{ID: "py", Image: "host", Driver: "raw_exec", PoolSize: 1})
	require.NoError(t, err)
	r, err := native.Claim(t.Context(), execution.ClaimRequest{
		Environment: "py", Wait: time.Minute, Labels: map[string]string{"student": "42"},
	})
	require.NoError(t, err)
	x, err := native.StartExecution(t.Context(), r.ID, execution.Request{Spec: execution.Spec{Argv: []string{"/bin/echo", "<b>hello"}}})
	require.NoError(t, err)
	deployments, _, err := c.Jobs().Deployments("seen", true, nil)
	require.NoError(t, err)
	require.NotEmpty(t, deployments)
	volume, _, err := c.HostVolumes().Create(&api.HostVolumeCreateRequest{Volume: &api.HostVolume{Name: "data"}}, nil)
	require.NoError(t, err)
	ids := strings.NewReplacer("{allocation}", alloc.ID, "{node}", alloc.NodeID, "{runner}", r.ID, "{execution}", x.ID, "{evaluation}",
		answer.EvalID, "{deployment}", deployments[0].ID, "{volume}", volume.Volume.ID, "{token}", token.AccessorID)
	pages = map[string]string{}
	for _, page := range siteMap {
		pages[page.name] = ids.Replace(page.path)
	}
	return a, pages
}

// TestKeysAndThePalette: everything is found and done without a pointer.
func TestKeysAndThePalette(t *testing.T) {
	t.Parallel()
	a, _ := populated(t)
	between := newLossy(t, a.addr)
	b, site := openTab(t), "http://"+between.address
	b.do(chromedp.EmulateViewport(1280, 860))
	b.signIn(site, a.token)

	b.key("?")
	b.until(`document.getElementById('keys').open`)
	b.accessible()
	b.picture("keys")
	b.key("\x1b")
	b.until(`!document.getElementById('keys').open`)

	b.key("/")
	b.until(`document.activeElement.id === 'find'`)
	_ = eval[string](b, `document.getElementById('find').value = ''`) // a browser without a person sends the letter apart from its key
	b.key("seen\r")
	b.until(`location.pathname === '/ui/search' && document.querySelector('a.hit[href="/ui/jobs/seen@default"]') !== null &&
		document.readyState === 'complete'`) // keys are heard
	b.key("g")
	b.key("n")
	b.until(`location.pathname === '/ui/clients' && document.readyState === 'complete'`)
	b.key("j")
	b.until(`document.activeElement.closest('tbody tr') !== null`)

	// A thing is found by its name, and then something is done with it.
	b.key("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	b.until(`document.getElementById('palette').open && document.activeElement.id === 'palette-words'`)
	b.key("seen")
	b.until(`[...document.querySelectorAll('#palette-list li')].some(li => li.textContent.startsWith('Jobsseen'))`)
	b.accessible()
	b.picture("palette")
	b.key("\r")
	b.until(`location.pathname === '/ui/jobs/seen@default' && document.readyState === 'complete'`)
	b.key("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	b.key("stop")
	b.until(`document.querySelector('#palette-list [aria-selected=true]').textContent.includes('Stop')`)
	b.key("\r")
	b.until(`location.pathname === '/ui/jobs/seen@default/stop' && document.querySelector('main strong').textContent === 'seen'`)

	// Paths of variables, labels of runners and ids of evaluations are found, too; what is lost is said.
	for words, path := range map[string]string{"app/d": "/ui/variable?", "student=4": "/ui/runners/", "found": "/ui/services/found"} {
		b.open(site, "/ui/search?q="+strings.ReplaceAll(words, "/", "%2F"))
		require.True(t, eval[bool](b, `[...document.querySelectorAll('a.hit')].some(a => a.getAttribute('href').startsWith('`+path+`'))`), words)
	}
	b.key("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	between.lose()
	b.key("seen")
	b.until(`document.getElementById('palette-state').textContent.includes('No connection')`)
	between.back(t)

	// Single keys can be switched off.
	b.open(site, "/ui/jobs")
	b.key("?")
	b.until(`document.getElementById('keys').open`)
	b.do(chromedp.Click(chromedp.CSS("#single-keys")))
	b.key("\x1b")
	b.until(`!document.getElementById('keys').open`)
	b.key("/")
	require.NotEqual(t, "find", eval[string](b, `document.activeElement.id`))
}

// TestATokenThatMayNotSeesLess: what it may not see is not offered, not found and not shown; who is signed out in between loses nothing.
func TestATokenThatMayNotSeesLess(t *testing.T) {
	t.Parallel()
	a, pages := populated(t)
	c := a.nomad()
	token, _, err := c.ACLTokens().Create(&api.ACLToken{Name: "looks", Type: "client", Policies: []string{"look"}}, nil)
	require.NoError(t, err)
	b, site := openTab(t), "http://"+a.addr
	b.signIn(site, token.SecretID)
	offered := eval[[]string](b, `[...document.querySelectorAll('.bar nav a')].map(a => a.getAttribute('href'))`)
	require.Contains(t, offered, "/ui/services")
	for _, path := range []string{"/ui/clients", "/ui/fleet", "/ui/servers", "/ui/doctor", "/ui/access", "/ui/variables"} {
		require.NotContains(t, offered, path)
	}
	b.open(site, "/ui/search?q=app")
	require.Zero(t, eval[int](b, `document.querySelectorAll('a.hit[href^="/ui/variable"]').length`))
	for _, page := range []string{"doctor", "servers", "tokens", "variable", "fleet"} {
		b.open(site, pages[page])
		b.until(`document.querySelector('.notice.warn[role=alert]') !== null`)
		require.False(t, eval[bool](b, `document.body.textContent.includes('s3cret')`))
	}

	// Who read and wrote what stands in the audit, and no secret does.
	b.signIn(site, a.token)
	b.open(site, "/ui/audit?object=app%2Fdb&operation=PUT&class=change")
	require.Contains(t, eval[string](b, `document.querySelector('main tbody').textContent`), "/v1/var/app/db")
	said := a.drover("", "operator", "audit", "list", "-per-page", "1000", "-json")
	for _, secret := range []string{a.token, token.SecretID, "s3cret"} {
		require.NotContains(t, said, secret)
	}
	require.Contains(t, said, `"Operation": "PUT"`)

	b.open(site, pages["variable-edit"])
	b.do(chromedp.SetValue(chromedp.CSS("#value1"), "typed by me"))
	v, _, err := c.Variables().Read("app/db", nil)
	require.NoError(t, err)
	v.Items["user"] = "they"
	_, _, err = c.Variables().Update(v, nil)
	require.NoError(t, err)
	b.do(chromedp.Click(chromedp.CSS("form.inputs .primary")))
	b.until(`document.querySelector('.notice.warn') !== null && document.getElementById('value1').value === 'typed by me'`)
	require.True(t, eval[bool](b, `[...document.querySelectorAll('main td')].some(td => td.textContent.trim() === 'they')`))
	b.accessible()
	b.picture("variable-conflict")
	b.do(chromedp.Click(chromedp.CSS("form.inputs .primary")))
	b.until(`location.pathname === '/ui/variable' && document.querySelector('.notice.ok') !== null`)
	v, _, err = c.Variables().Read("app/db", nil)
	require.NoError(t, err)
	require.Equal(t, "typed by me", v.Items["user"])

	// A token that is made here is shown once, works, and is refused when it is deleted, with what was typed still there.
	b.open(site, "/ui/access")
	b.do(chromedp.SetValue(chromedp.CSS("#name"), "short"), chromedp.SetValue(chromedp.CSS("#type"), "management"),
		chromedp.Click(chromedp.CSS("form.panel .primary")))
	b.until(`document.getElementById('secret') !== null`)
	b.accessible()
	secret := eval[string](b, `document.getElementById('secret').value`)
	c.SetSecretID(secret)
	self, _, err := c.ACLTokens().Self(nil)
	require.NoError(t, err)
	c.SetSecretID(a.token)
	b.signIn(site, secret)
	b.open(site, "/ui/variable/edit")
	b.do(chromedp.SetValue(chromedp.CSS("#path"), "new/one"), chromedp.SetValue(chromedp.CSS("#name0"), "x"),
		chromedp.SetValue(chromedp.CSS("#value0"), "kept"))
	_, err = c.ACLTokens().Delete(self.AccessorID, nil)
	require.NoError(t, err)
	b.do(chromedp.Click(chromedp.CSS("form.inputs .primary")))
	b.until(`document.querySelector('.notice.warn') !== null && document.getElementById('value0').value === 'kept'`)
}

// TestSigningInAtAProviderInABrowser: a person clicks, signs in at a real OpenID provider's form, and is led back, signed in.
func TestSigningInAtAProviderInABrowser(t *testing.T) {
	t.Parallel()
	provider := oidc.StartTestProvider(t)
	provider.SetSupportedScopes("openid", "profile", "email")
	provider.SetExpectedExpiry(time.Minute)
	provider.SetSubjectInfo(map[string]*oidc.TestSubject{
		"alice": {
			Password: "pass", UserInfo: map[string]any{"email": "alice@example.com"},
			CustomClaims: map[string]any{"groups": []string{"dev"}},
		},
	})
	provider.SetClientCreds("drover", "s3cret")
	a := bootstrapped(t, "")
	site := "http://" + a.addr
	provider.SetAllowedRedirectURIs([]string{site + "/ui/settings/tokens"})
	text, err := json.Marshal(map[string]any{
		"OIDCDiscoveryURL": provider.Addr(), "OIDCClientID": "drover", "OIDCClientSecret": "s3cret",
		"DiscoveryCaPem": []string{provider.CACert()}, "SigningAlgs": []string{"ES256"}, "OIDCScopes": []string{"profile"},
		"ListClaimMappings": map[string]string{"groups": "groups"}, "AllowedRedirectURIs": []string{site + "/ui/settings/tokens"},
	})
	require.NoError(t, err)
	a.drover(string(text), "acl", "auth-method", "create", "-name", "sso", "-type", "OIDC", "-token-locality", "local",
		"-max-token-ttl", "10m", "-default", "-config", "-")
	a.drover(`namespace "default" { policy = "read" }`, "acl", "policy", "apply", "look", "-")
	a.drover("", "acl", "binding-rule", "create", "-auth-method", "sso", "-selector", "dev in list.groups", "-bind-type", "policy",
		"-bind-name", "look")

	b := openTab(t, chromedp.Flag("ignore-certificate-errors", true)) // the provider's is its own
	b.open(site, "/ui/login?next=%2Fui%2Fservices")
	b.accessible()
	b.picture("login-methods")
	b.do(chromedp.Click(chromedp.CSS(`form[action="/ui/login/oidc"] button`)))
	b.until(`location.origin === '` + provider.Addr() + `' && document.querySelector('[name=uname]') !== null`)
	b.do(chromedp.SendKeys(chromedp.CSS("[name=uname]"), "alice"), chromedp.SendKeys(chromedp.CSS("[name=psw]"), "pass\r"))
	b.until(`location.pathname === '/ui/services' && document.querySelector('form[action="/ui/logout"]') !== null`)
	require.Empty(t, eval[string](b, `document.cookie`))
}
