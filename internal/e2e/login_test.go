package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/hashicorp/cap/oidc"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
)

// drover runs a command against the agent, and returns what it prints.
func (a *agent) drover(stdin string, args ...string) string {
	a.t.Helper()
	c := exec.Command(program.Binary, args...)
	c.Env = append(os.Environ(), "DROVER_ADDR=http://"+a.addr, "DROVER_TOKEN="+a.token)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it bare
		require.NoError(a.t, err, "%v: %s%s", args, out, exit.Stderr)
	}
	require.NoError(a.t, err)
	return string(out)
}

const loginAccess = "acl {\n  enabled = true\n  login_allow = [\"127.0.0.0/8\"]\n}\n"

// bootstrapped is an agent with access control whose management token it is asked with.
func bootstrapped(t *testing.T, more string) *agent {
	a := start(t, append([]string{"-dev"}, config(t, "", loginAccess+more)...)...)
	root, _, err := a.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	a.token = root.SecretID
	return a
}

// TestLoginWithABrowser: a person logs in at a real OpenID provider through the command line, a browser and the provider's form, and gets
// what the binding rules give to their groups.
func TestLoginWithABrowser(t *testing.T) {
	t.Parallel()
	provider := oidc.StartTestProvider(t)
	provider.SetSupportedScopes("openid", "profile", "email")
	provider.SetExpectedExpiry(time.Minute)
	provider.SetSubjectInfo(map[string]*oidc.TestSubject{
		"alice": {
			Password: "pass", UserInfo: map[string]any{"email": "alice@example.com"}, CustomClaims: map[string]any{"groups": []string{"dev"}},
		},
		"bob": {Password: "word", CustomClaims: map[string]any{"groups": []string{"guests"}}},
	})
	provider.SetClientCreds("drover", "s3cret")
	a := bootstrapped(t, "")
	text, err := json.Marshal(map[string]any{
		"OIDCDiscoveryURL": provider.Addr(), "OIDCClientID": "drover", "OIDCClientSecret": "s3cret",
		"DiscoveryCaPem": []string{provider.CACert()}, "SigningAlgs": []string{"ES256"},
		"ListClaimMappings": map[string]string{"groups": "groups"}, "ClaimMappings": map[string]string{"email": "email"},
		"OIDCScopes": []string{"profile"},
	})
	require.NoError(t, err)
	a.drover(string(text), "acl", "auth-method", "create", "-name", "sso", "-type", "OIDC", "-token-locality", "local",
		"-max-token-ttl", "10m", "-default", "-token-name-format", "${value.email}", "-config", "-")
	a.drover(`namespace "default" { policy = "read" }`, "acl", "policy", "apply", "look", "-")
	a.drover("", "acl", "binding-rule", "create", "-auth-method", "sso", "-selector", "dev in list.groups", "-bind-type", "policy",
		"-bind-name", "look")

	out, code := a.login(provider, "alice", "pass")
	require.Zero(t, code, out)
	var token api.ACLToken
	require.NoError(t, json.Unmarshal([]byte(out), &token))
	require.Equal(t, []string{"look"}, token.Policies)
	require.Equal(t, "alice@example.com", token.Name)
	require.Equal(t, 10*time.Minute, token.ExpirationTTL)
	require.False(t, token.Global)
	c := a.nomad()
	c.SetSecretID(token.SecretID)
	onlyLooks(t, c)

	out, code = a.login(provider, "bob", "word")
	require.NotZero(t, code)
	require.Contains(t, out, "no role or policy bindings matched")
	out, code = a.login(provider, "bob", "wrong")
	require.NotZero(t, code)
	require.Contains(t, out, "the identity provider refused: access_denied invalid password")
}

var (
	loginAddress = regexp.MustCompile(`https://\S+`)
	hiddenCode   = regexp.MustCompile(`name="code"[^>]*value="([^"]*)"`)
)

// login runs "drover login" and does in a browser's place what it asks for. It returns what was printed, and the exit code.
func (a *agent) login(provider *oidc.TestProvider, user, password string) (out string, code int) {
	a.t.Helper()
	redirects := []string{}
	c := exec.CommandContext(a.t.Context(), program.Binary, "login", "-json", "-oidc-callback-addr", "localhost:0")
	c.Env = append(os.Environ(), "DROVER_ADDR=http://"+a.addr, "DROVER_TOKEN=")
	var stdout strings.Builder
	c.Stdout = &stdout
	stderr, err := c.StderrPipe()
	require.NoError(a.t, err)
	require.NoError(a.t, c.Start())
	lines := bufio.NewScanner(stderr)
	to := ""
	for to == "" && lines.Scan() {
		to = loginAddress.FindString(lines.Text())
	}
	u, err := url.Parse(to)
	require.NoError(a.t, err)
	redirect := u.Query().Get("redirect_uri")
	redirects = append(redirects, redirect)
	provider.SetAllowedRedirectURIs(redirects)
	browser := provider.HTTPClient()
	page, err := browser.Get(to)
	require.NoError(a.t, err)
	form, err := io.ReadAll(page.Body)
	require.NoError(a.t, err)
	require.NoError(a.t, page.Body.Close())
	found := hiddenCode.FindStringSubmatch(string(form))
	require.NotNil(a.t, found, string(form))
	back, err := browser.PostForm(provider.Addr()+"/login", url.Values{
		"uname": {user}, "psw": {password}, "state": {u.Query().Get("state")}, "code": {found[1]}, "redirect_uri": {redirect},
	})
	require.NoError(a.t, err)
	require.Equal(a.t, http.StatusOK, back.StatusCode)
	require.NoError(a.t, back.Body.Close())
	browser.CloseIdleConnections()
	rest := ""
	for lines.Scan() {
		rest += lines.Text()
	}
	_ = c.Wait() // the code says it
	return stdout.String() + rest, c.ProcessState.ExitCode()
}

// TestACIThatMayOnlyDeploy: a CI job shows its token, and may do with what it gets what its repository may, and no more; a token that was
// stolen is worth nothing once it is deleted.
func TestACIThatMayOnlyDeploy(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	require.NoError(t, err)
	token := func(repository, audience string) string {
		text, err := jwt.Signed(signer).Claims(map[string]any{
			"iss": "https://ci.example", "aud": audience, "repository": repository, "ref": "main",
			"iat": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(),
		}).Serialize()
		require.NoError(t, err)
		return text
	}
	a := bootstrapped(t, "")
	text, err := json.Marshal(map[string]any{
		"JWTValidationPubKeys": []string{public}, "BoundIssuer": []string{"https://ci.example"}, "BoundAudiences": []string{"drover"},
		"SigningAlgs": []string{"ES256"}, "ClaimMappings": map[string]string{"repository": "repository", "ref": "ref"},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ci.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	a.drover("", "acl", "auth-method", "create", "-name", "ci", "-type", "JWT", "-token-locality", "global", "-max-token-ttl", "1h",
		"-default", "-config", "@"+file)
	a.drover(`namespace "default" { capabilities = ["list-jobs", "read-job", "submit-job"] }`, "acl", "policy", "apply", "deploy", "-")
	a.drover("", "acl", "role", "create", "-name", "shop", "-policy", "deploy")
	a.drover("", "acl", "binding-rule", "create", "-auth-method", "ci", "-selector", `value.repository matches "^shop/" and value.ref == main`,
		"-bind-type", "role", "-bind-name", "shop")

	var made api.ACLToken
	require.NoError(t, json.Unmarshal([]byte(a.drover(token("shop/web", "drover"), "login", "-login-token", "-", "-json")), &made))
	require.Equal(t, "JWT-ci", made.Name)
	require.True(t, made.Global)
	require.Equal(t, "shop", made.Roles[0].Name)
	ci := a.nomad()
	ci.SetSecretID(made.SecretID)
	_, _, err = ci.Jobs().Register(rawJob("web", "batch", "/bin/true"), nil)
	require.NoError(t, err)
	allocation(t, a.nomad(), "web", "complete")
	for what, use := range map[string]func() error{
		"nodes":  func() error { _, _, err := ci.Nodes().List(nil); return err },
		"tokens": func() error { _, _, err := ci.ACLTokens().List(nil); return err },
		"gc":     func() error { return ci.System().GarbageCollect() },
		"rules":  func() error { _, _, err := ci.ACLBindingRules().List(nil); return err },
	} {
		require.ErrorContains(t, use(), "403 (Permission denied)", what)
	}
	stranger := a.nomad()
	stranger.SetSecretID("")
	login := func(text string) error {
		_, _, err := stranger.ACLAuth().Login(&api.ACLLoginRequest{AuthMethodName: "ci", LoginToken: text}, nil)
		return err
	}
	require.ErrorContains(t, login(token("other/web", "drover")), "400 (no role or policy bindings matched)")
	require.ErrorContains(t, login(token("shop/web", "else")), "403 (unable to validate provided token: invalid audience")
	require.ErrorContains(t, login("x"), "403 (unable to validate provided token")

	_, err = a.nomad().ACLTokens().Delete(made.AccessorID, nil)
	require.NoError(t, err)
	_, _, err = ci.Jobs().List(nil)
	require.ErrorContains(t, err, "403 (ACL token not found)")
}
