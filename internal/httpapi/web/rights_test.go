package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// limited is the API of a viewer with these capabilities in every namespace, who may read nodes.
type limited struct {
	api
	capabilities string // in JSON
	asked        int
}

func (a *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/rights" {
		a.api.ServeHTTP(w, r)
		return
	}
	a.asked++
	_, _ = w.Write([]byte(`{"node": "read", "jobs": true, "runners": true, "namespace": "` + r.URL.Query().Get("namespace") +
		`", "capabilities": ` + a.capabilities +
		`, "somewhere": ` + a.capabilities + `}`))
}

var offered = regexp.MustCompile(`<form[^>]*method="post"[^>]*action="([^"]*)"`)

// formsOf are the forms of a page that change something.
func formsOf(body string) (actions []string) {
	for _, m := range offered.FindAllStringSubmatch(body, -1) {
		if m[1] != "/ui/logout" && m[1] != "/ui/theme" {
			actions = append(actions, m[1])
		}
	}
	return actions
}

// TestWhoMayOnlyReadIsOfferedNothing, and each page asks once what its viewer may.
func TestWhoMayOnlyReadIsOfferedNothing(t *testing.T) {
	t.Parallel()
	a := &limited{capabilities: `["list-jobs", "read-job", "read-runner"]`, api: api{environments: []execution.Environment{{ID: "e"}}}}
	h := of(a)
	for _, path := range []string{
		"/ui/jobs", aJob, aJob + "/versions", aJob + "/evaluations", aJob + "/deployments", aJob + "/definition", "/ui/allocations",
		"/ui/allocations/a1", "/ui/clients", "/ui/clients/n1", "/ui/environments", "/ui/play", "/ui/topology", "/ui/topology?node=n1",
	} {
		before := a.asked
		body := ask(t, h, "GET", path, "good", nil).Body.String()
		require.Empty(t, formsOf(body), path)
		require.Equal(t, before+1, a.asked, "%s asks once", path)
		for _, link := range []string{"/ui/jobs/run", "/logs", "/files", "/terminal"} {
			require.NotContains(t, body, link+`"`, path)
			require.NotContains(t, body, link+`?`, path)
		}
		require.NotContains(t, body, `<a href="/ui/play"`, path)
		require.Contains(t, body, `<a href="/ui/jobs"`, path)
		inert(t, body)
	}
	require.NotContains(t, ask(t, h, "GET", "/ui/jobs/run", "good", nil).Body.String(), `id="plan"`)
	require.Contains(t, ask(t, h, "GET", "/ui/play", "good", nil).Body.String(), "It takes the rights to claim runners")
	require.Contains(t, ask(t, h, "GET", "/ui/allocations/a1/terminal", "good", nil).Body.String(), text.Forbidden)
}

// TestWhoMayOnlyRunPlays: a token that may claim runners and execute in them, and nothing else, names its environment and writes no files.
func TestWhoMayOnlyRunPlays(t *testing.T) {
	t.Parallel()
	h := of(&limited{capabilities: `["claim-runner", "execute"]`})
	body := ask(t, h, "GET", "/ui/play", "good", nil).Body.String()
	require.Contains(t, body, `<input id="environment" name="environment"`)
	require.NotContains(t, body, "<fieldset")
	require.NotContains(t, body, `id="add"`)
	require.NotContains(t, body, "main.sh")
	require.Contains(t, body, `id="modes"`)
	inert(t, body)
}

// TestEachRightOffersItsButtons, and no other.
func TestEachRightOffersItsButtons(t *testing.T) {
	t.Parallel()
	const job = "/ui/jobs/a@b@ns/"
	for capability, want := range map[string][]string{
		"scale-job": {}, "deregister-job": {job + "stop"}, "purge-job": {}, "evaluate-job": {job + "evaluate"},
		"promote-deployment": {job + "promote"}, "pause-deployment": {job + "pause"}, "fail-deployment": {job + "fail"},
		`deregister-job", "purge-job`: {job + "stop", job + "purge"},
	} {
		a := &limited{capabilities: `["list-jobs", "read-job", "` + capability + `"]`}
		require.ElementsMatch(t, want, formsOf(ask(t, of(a), "GET", aJob, "good", nil).Body.String()), capability)
	}
	a := &limited{capabilities: `["read-job", "revert-job"]`}
	require.NotEmpty(t, formsOf(ask(t, of(a), "GET", aJob+"/versions", "good", nil).Body.String()))
	for capability, link := range map[string]string{"read-logs": "/logs", "read-fs": "/files", "alloc-exec": "/terminal"} {
		a := &limited{capabilities: `["read-job", "` + capability + `"]`}
		body := ask(t, of(a), "GET", "/ui/allocations/a1", "good", nil).Body.String()
		for _, each := range []string{"/logs", "/files", "/terminal"} {
			require.Equal(t, each == link, strings.Contains(body, `href="/ui/allocations/a1`+each+`"`), capability+each)
		}
	}
}

// TestANodeIsSteered: what ends something asks once and names the node, and what is typed wrong is said and stays.
func TestANodeIsSteered(t *testing.T) {
	t.Parallel()
	const at = "/ui/clients/n1"
	a := &api{}
	h := page(a)
	body := ask(t, h, "GET", at, "good", nil).Body.String()
	require.Equal(t, []string{at + "/eligible", at + "/drain", at + "/unset", at + "/meta"}, formsOf(body))
	require.Contains(t, body, "37.5 %")
	require.Contains(t, body, "2.0 KiB of 4.0 KiB")
	require.Contains(t, body, "now 7.5 %, at most 30.0 % in 20s")
	require.Contains(t, body, `aria-label="Memory: not known now, at most 3.0 MiB in 20s"`)
	inert(t, body)

	w := ask(t, h, "POST", at+"/drain", "good", url.Values{"deadline": {"soon<b>"}, "system": {"1"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "deadline: &#34;soon&lt;b&gt;&#34; is no duration")
	require.Contains(t, w.Body.String(), `value="soon&lt;b&gt;"`)
	inert(t, w.Body.String())

	form := url.Values{"deadline": {"90m"}, "system": {"1"}}
	w = ask(t, h, "POST", at+"/drain", "good", form)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "<strong><bdi>&lt;img", "it names the node")
	for _, says := range []string{
		"1 would move, 1 would find no room, 3 are of jobs", `href="/ui/clients/n2"`, `href="/ui/allocations/a2"`, "finds no room, and waits",
	} {
		require.Contains(t, w.Body.String(), says, "it says before what would become of the work")
	}
	require.NotContains(t, a.called(), "PUT")
	inert(t, w.Body.String())
	form.Set("sure", "1")
	w = ask(t, h, "POST", at+"/drain", "good", form)
	require.Equal(t, at, w.Header().Get("Location"))
	require.Contains(t, a.called(), `PUT /v1/node/n1/drain {"DrainSpec":{"Deadline":5400000000000,"IgnoreSystemJobs":true},"NodeID":"n1"}`)
	require.Contains(t, open(t, h, at, "good", w.Result().Cookies()).Body.String(), "The node is drained.")

	for action, c := range map[string]struct {
		form  url.Values
		wants string
	}{
		"cancel":     {url.Values{"eligible": {"1"}}, `PUT /v1/node/n1/drain {"MarkEligible":true,"NodeID":"n1"}`},
		"ineligible": {nil, `PUT /v1/node/n1/eligibility {"Eligibility":"ineligible","NodeID":"n1"}`},
		"meta":       {url.Values{"key": {"rack"}, "value": {"<b>"}}, `PUT /v1/client/metadata {"Meta":{"rack":"\u003cb\u003e"},"NodeID":"n1"}`},
		"unset":      {url.Values{"key": {"rack"}, "sure": {"1"}}, `PUT /v1/client/metadata {"Meta":{"rack":null},"NodeID":"n1"}`},
	} {
		require.Equal(t, http.StatusSeeOther, ask(t, h, "POST", at+"/"+action, "good", c.form).Code, action)
		require.Contains(t, a.called(), c.wants)
	}
	require.Contains(t, ask(t, h, "POST", at+"/unset", "good", url.Values{"key": {"rack"}}).Body.String(), "› rack</bdi></strong>")
	require.Equal(t, http.StatusBadRequest, ask(t, h, "POST", at+"/meta", "good", url.Values{"value": {"x"}}).Code)
	require.Equal(t, http.StatusNotFound, ask(t, h, "POST", at+"/explode", "good", nil).Code)
	require.Equal(t, http.StatusForbidden, ask(t, h, "POST", at+"/eligible", "", nil).Code)
}
