package e2e

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// webLinks and webForms are what a page leads to, and what of it changes something.
var (
	webLinks = regexp.MustCompile(`<a [^>]*href="(/ui/[^"]*)"`)
	webForms = regexp.MustCompile(`<form[^>]*method="post"[^>]*action="([^"]*)"`)
)

// TestThePageOffersNothingThatIsRefused follows every link of every page that a token which may only read is led to: none is refused, and
// none has a form that changes something.
func TestThePageOffersNothingThatIsRefused(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-dev"}, config(t, "", "acl {\n  enabled = true\n}\n")...)...)
	root, _, err := a.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	a.token = root.SecretID
	_, _, err = a.nomad().Jobs().Register(rawJob("seen", "service", "/bin/sleep", "600"), nil)
	require.NoError(t, err)
	allocation(t, a.nomad(), "seen", "running")
	native, err := client.New("http://"+a.addr, client.WithToken(root.SecretID))
	require.NoError(t, err)
	_, _, err = native.PutEnvironment(t.Context(), execution.Environment{ID: "py", Image: "host", Driver: "raw_exec", PoolSize: 1})
	require.NoError(t, err)
	_, err = a.nomad().ACLPolicies().Upsert(&api.ACLPolicy{Name: "look", Rules: `
		namespace "default" { capabilities = ["list-jobs", "read-job", "read-runner", "read-logs"] }
		node { policy = "read" }
		agent { policy = "read" }
		operator { policy = "read" }`}, nil)
	require.NoError(t, err)
	looks, _, err := a.nomad().ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"look"}}, nil)
	require.NoError(t, err)

	site := "http://" + a.addr
	at, err := url.Parse(site + "/ui/")
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	jar.SetCookies(at, []*http.Cookie{{
		Name: "drover-" + at.Port(), Value: base64.RawURLEncoding.EncodeToString([]byte(looks.SecretID)), Path: "/ui",
	}})
	browser := &http.Client{Jar: jar, Timeout: 20 * time.Second}
	seen, todo := map[string]bool{}, []string{"/ui/"}
	for len(todo) > 0 && len(seen) < 200 {
		path := strings.ReplaceAll(todo[0], "&amp;", "&")
		todo = todo[1:]
		if seen[path] || strings.HasPrefix(path, "/ui/static/") || strings.HasPrefix(path, "/ui/login") {
			continue
		}
		seen[path] = true
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+path, http.NoBody)
		require.NoError(t, err)
		answer, err := browser.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		if answer.StatusCode != http.StatusNotFound { // of what a task has not written yet
			require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", path, body)
		}
		require.NotContains(t, string(body), "Your token may not do this", path)
		for _, form := range webForms.FindAllStringSubmatch(string(body), -1) {
			require.Contains(t, []string{"/ui/logout", "/ui/theme"}, form[1], path)
		}
		for _, link := range webLinks.FindAllStringSubmatch(string(body), -1) {
			todo = append(todo, link[1])
		}
	}
	require.Greater(t, len(seen), 15)
	for _, page := range []string{"/ui/topology", "/ui/jobs/seen@default", "/ui/jobs/seen@default/versions", "/ui/environments/py"} {
		require.True(t, seen[page], page)
	}
}
