package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/web/admin"
	"github.com/drover-project/drover/internal/httpapi/web/static"
)

// bad is a name that holds markup and turns, in JSON.
const bad = `<img src=x onerror=alert(1)>\u202e`

// estate answers for the parts of a cluster, each with names that hold markup and turn.
func estate() fixed {
	all := fixed{}
	for path, body := range estateAnswers {
		said := all[path]
		said.status, said.body = http.StatusOK, strings.ReplaceAll(body, "BAD", bad)
		all[path] = said
	}
	gone := all["/v1/acl/binding-rule/gone"]
	gone.status, gone.body = http.StatusNotFound, "not found"
	all["/v1/acl/binding-rule/gone"] = gone
	return all
}

var estateAnswers = map[string]string{
	"/v1/rights": `{"management": true}`,
	"/v1/doctor": `{"State": "weak", "Findings": [{"Check": "leader", "State": "ok", "Server": "BAD", "Says": "BAD leads."},
			{"Check": "quorum", "State": "weak", "Says": "one more failure stops the cluster"}]}`,
	"/v1/doctor/nodes": `{"State": "broken", "Nodes": 12, "Silent": 1, "Findings": [{"Check": "driver BAD", "State": "broken", "Says": "BAD",
			"Count": 3, "Nodes": [{"ID": "n1", "Name": "BAD"}, {"ID": "n2", "Name": "two"}]}]}`,
	"/v1/operator/audit": `{"Records": [{"Time": "2026-01-02T03:04:05Z", "Server": "BAD", "TokenName": "BAD", "AccessorID": "t1",
			"Operation": "BAD", "Path": "/BAD", "Object": "BAD", "Namespace": "BAD", "Reason": "BAD", "Remote": "BAD"},
			{"Allowed": true, "Status": 503, "Needs": "BAD"}],
			"Servers": [{"Name": "BAD"}, {"Name": "BAD", "Problem": "BAD"}], "NextToken": "BAD", "Until": "2026-01-02T03:04:05Z"}`,
	"/v1/evaluations": `[{"ID": "e1234567890", "Status": "blocked", "JobID": "BAD", "Namespace": "BAD", "TriggeredBy": "BAD",
			"StatusDescription": "BAD"}, {"ID": "e2", "FailedTGAllocs": {"a": {}, "b": {}}}]`,
	"/v1/evaluation/e1": `{"ID": "e1", "Status": "complete", "JobID": "BAD", "Namespace": "BAD", "StatusDescription": "BAD",
			"FailedTGAllocs": {"BAD": {"NodesEvaluated": 3, "NodesExhausted": 2, "DimensionExhausted": {"memory": 2},
			"ConstraintFiltered": {"BAD": 1}}},
			"QueuedAllocations": {"BAD": 2}, "BlockedEval": "e3", "RelatedEvals": [{"ID": "e3", "Status": "blocked", "StatusDescription": "BAD"}]}`,
	"/v1/evaluation/e1/allocations": `[{"ID": "a1", "Name": "BAD", "NodeID": "n1", "NodeName": "BAD", "ClientStatus": "running"}]`,
	"/v1/deployments": `[{"ID": "d1", "Status": "running", "JobID": "BAD", "Namespace": "ns", "StatusDescription": "BAD",
			"TaskGroups": {"BAD": {"DesiredTotal": 3, "HealthyAllocs": 1}}}]`,
	"/v1/deployment/d1": `{"ID": "d1", "Status": "running", "JobID": "web", "Namespace": "ns", "StatusDescription": "BAD",
			"TaskGroups": {"BAD": {"DesiredTotal": 3, "DesiredCanaries": 1, "RequireProgressBy": "2026-01-02T03:04:05Z"}}}`,
	"/v1/services": `[{"Namespace": "BAD", "Services": [{"ServiceName": "BAD", "Tags": ["BAD"]}]}]`,
	"/v1/service/web": `[{"ServiceName": "web", "Namespace": "ns", "JobID": "BAD", "AllocID": "a1", "NodeID": "n1", "Datacenter": "BAD",
			"Tags": ["BAD"], "Address": "10.0.0.1", "Port": 80}, {"Unhealthy": true}]`,
	"/v1/volumes": `[{"ID": "v1", "Name": "BAD", "Namespace": "BAD", "State": "ready", "NodeID": "n1", "NodePool": "BAD",
			"PluginID": "BAD", "CapacityBytes": 1048576}]`,
	"/v1/volume/host/v1": `{"ID": "v1", "Name": "BAD", "Namespace": "ns", "State": "pending", "StateDescription": "BAD",
			"HostPath": "/BAD", "Allocations": [{"ID": "a1", "Name": "BAD", "NodeName": "BAD"}]}`,
	"/v1/namespaces": `[{"Name": "BAD", "Quota": "BAD", "Description": "BAD"}]`,
	"/v1/namespace/ns": `{"Name": "ns", "Quota": "q", "Description": "BAD", "Capabilities": {"EnabledTaskDrivers": ["BAD"]},
			"NodePoolConfiguration": {"Default": "BAD", "Denied": ["BAD"]}, "Images": {"Registries": ["BAD"]}}`,
	"/v1/quota/q": `{"Name": "q", "Limits": [{"Region": "BAD", "Hash": "AQI=", "RegionLimit": {"CPU": 1000, "MemoryMB": -1, "Cores": 0,
			"Runners": 4, "Devices": [{"Name": "BAD", "Count": 2}], "Storage": {"VariablesMB": 5}, "FleetPerDay": 2.5}}]}`,
	"/v1/quota-usage/q": `{"Name": "q", "Used": {"AQI=": {"RegionLimit": {"CPU": 900, "MemoryMB": 0, "Runners": 1,
			"Devices": [{"Name": "BAD", "Count": 1}], "Storage": {"VariablesMB": 1}, "FleetPerDay": 1}}}}`,
	"/v1/vars":    `[{"Namespace": "BAD", "Path": "BAD/x", "ModifyTime": 1}, {"Namespace": "ns", "Path": "p", "Lock": {}}]`,
	"/v1/var/a/b": `{"Namespace": "ns", "Path": "a/b", "ModifyIndex": 7, "Items": {"BAD": "secret BAD"}}`,
	"/v1/acl/tokens": `[{"AccessorID": "t1234567890", "Name": "BAD", "Type": "client", "Policies": ["BAD"], "Roles": [{"Name": "BAD"}],
			"ExpirationTime": "2026-01-02T03:04:05Z"}]`,
	"/v1/acl/token/t1":      `{"AccessorID": "t1", "Name": "BAD", "Type": "client", "Policies": ["BAD"]}`,
	"/v1/acl/token":         `{"AccessorID": "t2", "SecretID": "the-secret-of-it", "Name": "BAD", "Type": "client"}`,
	"/v1/acl/policies":      `[{"Name": "BAD", "Description": "BAD", "JobACL": {"Namespace": "BAD", "JobID": "BAD"}}]`,
	"/v1/acl/policy/p":      `{"Name": "p", "Description": "BAD", "Rules": "namespace \"BAD\" {}"}`,
	"/v1/acl/roles":         `[{"ID": "r1", "Name": "BAD", "Description": "BAD", "Policies": [{"Name": "BAD"}]}]`,
	"/v1/acl/auth-methods":  `[{"Name": "BAD", "Type": "OIDC", "Default": true}, {"Name": "ci", "Type": "JWT"}]`,
	"/v1/acl/binding-rules": `[{"ID": "b1", "AuthMethod": "BAD"}, {"ID": "gone"}]`,
	"/v1/acl/binding-rule/b1": `{"ID": "b1", "AuthMethod": "BAD", "Selector": "BAD", "BindType": "role", "BindName": "BAD",
			"Description": "BAD"}`,
	"/v1/search/fuzzy": `{"Matches": {"jobs": [{"ID": "BAD", "Scope": ["ns", "web"]}], "nodes": [{"ID": "BAD", "Scope": ["n1"]}],
			"tasks": [{"ID": "BAD", "Scope": ["ns", "web", "g"]}], "allocs": [{"ID": "BAD", "Scope": ["ns", "a1"]}], "namespaces": [{"ID": "BAD"}]},
			"Truncations": {"jobs": true}}`,
	"/v1/search":       `{"Matches": {"allocs": ["badbad01-1"], "evals": ["badbad02-2"], "deployment": ["badbad03-3"]}}`,
	"/v1/environments": `[{"id": "py-BAD", "image": "BAD"}]`,
	"/v1/runners":      `[{"id": "r-1", "claimedAt": "2026-01-02T03:04:05Z", "labels": {"student": "BAD"}}, {"id": "warm-img"}]`,
}

// estatePages are the pages about a cluster's parts, with something that each has to say of estate.
var estatePages = map[string]string{
	"/ui/doctor":                           "one more failure stops the cluster",
	"/ui/evaluations":                      `<a href="/ui/evaluations/e1234567890">`,
	"/ui/evaluations/e1":                   "not enough memory on 2 nodes",
	"/ui/deployments":                      "1 / 3",
	"/ui/deployments/d1":                   admin.Text.Promote,
	"/ui/services":                         `<bdi>&lt;img`,
	"/ui/services/web":                     "10.0.0.1:80",
	"/ui/volumes":                          "1.0 MiB",
	"/ui/volumes/v1?namespace=ns":          `<bdi>/&lt;img`,
	"/ui/namespaces":                       `<bdi>&lt;img`,
	"/ui/namespaces/ns":                    `<meter min="0" max="1" high="0.8" optimum="0" value="0.900"`,
	"/ui/audit?allowed=false":              admin.AuditText.Refused,
	"/ui/variables":                        admin.Text.Locked,
	"/ui/variable?namespace=ns&path=a%2Fb": admin.Text.ShowValues,
	"/ui/variable?namespace=ns&path=a%2Fb&values=shown": "secret &lt;img",
	"/ui/variable/edit":                         admin.Text.NewVariable,
	"/ui/variable/edit?namespace=ns&path=a%2Fb": "secret &lt;img",
	"/ui/access":                                `<a href="/ui/access/tokens/t1234567890">`,
	"/ui/access/tokens/t1":                      "&lt;img",
	"/ui/access/policies":                       "&lt;img",
	"/ui/access/policies/p":                     "namespace &#34;&lt;img",
	"/ui/access/roles":                          "&lt;img",
	"/ui/access/methods":                        "JWT",
	"/ui/access/rules":                          "role &lt;img",
	"/ui/search?q=img":                          `data-kind="Jobs"`,
	"/ui/search?q=bad0":                         "badbad02-2",
	"/ui/login":                                 methodText.Other,
}

func TestThePartsOfAClusterAreShownAndInert(t *testing.T) {
	t.Parallel()
	h := of(estate())
	for path, holds := range estatePages {
		w := ask(t, h, "GET", path, "good", nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		body := w.Body.String()
		inert(t, body)
		require.Contains(t, body, strings.ReplaceAll(holds, "'", "&#39;"), path)
		require.Equal(t, 1, strings.Count(body, "<h1>"), path)
		require.Equal(t, static.ContentPolicy, w.Header().Get("Content-Security-Policy"), path)
		require.NotContains(t, body, text.Failed, path)
		if path == "/ui/variable?namespace=ns&path=a%2Fb" {
			require.NotContains(t, body, "secret ", "values are hidden")
		}
	}
}

// TestTheDoctorSaysWhatNodesFound: those that found the same stand together, and who may read nodes alone sees them alone.
func TestTheDoctorSaysWhatNodesFound(t *testing.T) {
	t.Parallel()
	body := ask(t, of(estate()), "GET", "/ui/doctor", "good", nil).Body.String()
	require.Contains(t, body, `<a href="/ui/clients/n2"><bdi>two</bdi></a> and 1 more</td>`)
	require.Contains(t, body, "Nodes that were looked at: 12. Of them 1 do not say")
	for rights, holds := range map[string]string{
		`{"node": "read"}`: "Nodes that were looked at", `{"agent": "read"}`: "one more failure stops the cluster", `{"jobs": true}`: "",
	} {
		h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answers := map[string]string{"/v1/rights": rights}
			if holds != "" && !strings.Contains(rights, "agent") || r.URL.Path == "/v1/doctor" && strings.Contains(rights, "agent") {
				answers["/v1/doctor/nodes"], answers["/v1/doctor"] = estateAnswers["/v1/doctor/nodes"], estateAnswers["/v1/doctor"]
			}
			if body, ok := answers[r.URL.Path]; ok {
				_, _ = w.Write([]byte(body))
				return
			}
			http.Error(w, "Permission denied", http.StatusForbidden)
		}))
		body := ask(t, h, "GET", "/ui/doctor", "good", nil).Body.String()
		require.Equal(t, holds == "", strings.Contains(body, text.Forbidden), rights)
		require.Contains(t, body, holds)
		require.Equal(t, strings.Contains(rights, "node"), strings.Contains(body, "Nodes that were looked at"), rights)
		require.Equal(t, strings.Contains(rights, "agent"), strings.Contains(body, "one more failure"), rights)
	}
}

// TestWhoMayNotSeesNothingOfThem: without rights each page says so, and a server that fails or is away is told, with what to do.
func TestWhoMayNotSeesNothingOfThem(t *testing.T) {
	t.Parallel()
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<b>no leader", http.StatusInternalServerError)
	})
	for path, holds := range estatePages {
		if path == "/ui/login" || path == "/ui/variable/edit" {
			continue
		}
		w := ask(t, of(fixed{}), "GET", path, "good", nil)
		inert(t, w.Body.String())
		require.NotContains(t, w.Body.String(), holds, path)
		if !strings.HasPrefix(path, "/ui/search") {
			require.Equal(t, http.StatusForbidden, w.Code, path)
			require.Contains(t, w.Body.String(), text.Forbidden, path)
		}
		w = ask(t, of(failing), "GET", path, "good", nil)
		inert(t, w.Body.String())
		require.Contains(t, w.Body.String(), "&lt;b&gt;no leader", path)
	}
}

func TestAnEmptyClusterHasEmptyLists(t *testing.T) {
	t.Parallel()
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := "[]"
		if r.URL.Path == "/v1/rights" || strings.HasPrefix(r.URL.Path, "/v1/search") {
			body = "{}"
		}
		_, _ = w.Write([]byte(body))
	}))
	for path, holds := range map[string]string{
		"/ui/evaluations": admin.Text.NoEvaluations, "/ui/deployments": admin.Text.NoDeployments, "/ui/services": admin.Text.NoServices,
		"/ui/volumes": admin.Text.NoVolumes, "/ui/namespaces": admin.Text.NoNamespaces, "/ui/access": admin.Text.NoTokens,
		"/ui/access/policies": admin.Text.NoPolicies, "/ui/access/roles": admin.Text.NoRoles, "/ui/access/methods": admin.Text.NoMethods,
		"/ui/access/rules": admin.Text.NoRules, "/ui/services/web": admin.Text.NoInstances, "/ui/search?q=ab": "Nothing that your token",
	} {
		w := ask(t, h, "GET", path, "good", nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Body.String(), strings.ReplaceAll(holds, "'", "&#39;"), path)
	}
}

// variables keeps one, as the API does.
type variables struct {
	mu    sync.Mutex
	index uint64            // guarded by mu
	items map[string]string // guarded by mu; nil: there is none
	may   bool              // constant
}

func (v *variables) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	cas := r.URL.Query().Get("cas")
	now := func(status int) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"Path": "a/b", "ModifyIndex": v.index, "Items": v.items})
	}
	is := "0"
	if v.items != nil {
		is = string(rune('0' + v.index))
	}
	switch {
	case r.URL.Path == "/v1/rights":
		_, _ = w.Write([]byte(`{"variables": true}`))
	case !v.may || r.URL.Path != "/v1/var/a/b" || r.URL.Query().Get("namespace") != "ns":
		http.Error(w, "Permission denied", http.StatusForbidden)
	case r.Method == http.MethodGet && v.items == nil:
		http.Error(w, "variable not found", http.StatusNotFound)
	case r.Method == http.MethodGet:
		now(http.StatusOK)
	case cas != is:
		now(http.StatusConflict)
	case r.Method == http.MethodPut:
		var body struct{ Items map[string]string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		v.index, v.items = v.index+1, body.Items
		now(http.StatusOK)
	case r.Method == http.MethodDelete:
		v.items = nil
		w.WriteHeader(http.StatusNoContent)
	}
}

func variableForm(index string, pairs ...string) url.Values {
	form := url.Values{"namespace": {"ns"}, "path": {"a/b"}, "index": {index}}
	for i := 0; i < len(pairs); i += 2 {
		form["name"], form["value"] = append(form["name"], pairs[i]), append(form["value"], pairs[i+1])
	}
	return form
}

// TestAVariableIsNotWrittenOverWhatNobodySaw: who saves after somebody else did is shown both, loses nothing, and may write over it then.
func TestAVariableIsNotWrittenOverWhatNobodySaw(t *testing.T) {
	t.Parallel()
	v := &variables{may: true}
	h := of(v)
	w := ask(t, h, "POST", "/ui/variable/edit", "good", variableForm("0", "user", "me", "", "", "text", "a\r\nb"))
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body.String())
	require.Equal(t, "/ui/variable?namespace=ns&path=a%2Fb", w.Header().Get("Location"))
	require.Equal(t, map[string]string{"user": "me", "text": "a\nb"}, v.items)
	require.Contains(t, follow(t, h, w, "good"), admin.Text.Done["variable"])

	// Somebody else saw it, too, and saved first.
	w = ask(t, h, "POST", "/ui/variable/edit", "good", variableForm("1", "user", "they"))
	require.Equal(t, http.StatusSeeOther, w.Code)
	w = ask(t, h, "POST", "/ui/variable/edit", "good", variableForm("1", "user", hostile, "more", "kept"))
	require.Equal(t, http.StatusConflict, w.Code)
	body := w.Body.String()
	inert(t, body)
	require.Contains(t, body, admin.Text.ConflictMore)
	require.Contains(t, body, ">\nthey</pre>")
	require.Contains(t, body, ">\n&lt;img src=x onerror=alert(1)&gt;\u202Etxt&#34;&#39;</textarea>", "nothing typed is lost")
	require.Contains(t, body, `name="index" value="2"`)
	require.Equal(t, map[string]string{"user": "they"}, v.items)
	w = ask(t, h, "POST", "/ui/variable/edit", "good", variableForm("2", "user", "me"))
	require.Equal(t, http.StatusSeeOther, w.Code, "who saw both may write")

	w = ask(t, h, "POST", "/ui/variable/delete", "good", variableForm("3"))
	require.Contains(t, w.Body.String(), "<strong><bdi>a/b</bdi></strong>", "it asks, and names it")
	old := variableForm("2")
	old.Set("sure", "1")
	require.Equal(t, http.StatusConflict, ask(t, h, "POST", "/ui/variable/delete", "good", old).Code)
	require.NotNil(t, v.items)
	sure := variableForm("3")
	sure.Set("sure", "1")
	w = ask(t, h, "POST", "/ui/variable/delete", "good", sure)
	require.Equal(t, "/ui/variables", w.Header().Get("Location"))
	require.Nil(t, v.items)

	// What was deleted meanwhile is a conflict, too.
	w = ask(t, h, "POST", "/ui/variable/edit", "good", variableForm("3", "user", "me"))
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, w.Body.String(), admin.Text.Absent)
	require.Contains(t, w.Body.String(), `name="index" value="0"`)
}

func TestAVariableThatCannotBeWrittenKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	h := of(&variables{may: true})
	for name, c := range map[string]struct {
		form   url.Values
		status int
		holds  string
	}{
		"no name": {variableForm("0", "", "typed"), http.StatusBadRequest, "item 1: it has a value, but no name"},
		"twice":   {variableForm("0", "x", "typed", "x", "2"), http.StatusBadRequest, "it is there twice"},
		"add":     {func() url.Values { f := variableForm("0", "x", "typed"); f.Set("add", "1"); return f }(), http.StatusOK, "Item 3"},
	} {
		w := ask(t, h, "POST", "/ui/variable/edit", "good", c.form)
		require.Equal(t, c.status, w.Code, name)
		require.Contains(t, w.Body.String(), strings.ReplaceAll(c.holds, `"`, "&#34;"), name)
		require.Contains(t, w.Body.String(), ">\ntyped</textarea>", name)
	}
	for name, refusing := range map[string]http.Handler{"a token that may not": of(&variables{}), "an expired session": of(fixed{})} {
		w := ask(t, refusing, "POST", "/ui/variable/edit", "good", variableForm("0", "x", "typed"))
		require.Equal(t, http.StatusForbidden, w.Code, name)
		require.Contains(t, w.Body.String(), ">\ntyped</textarea>", name)
		require.Contains(t, w.Body.String(), text.Forbidden, name)
	}
}

// TestASecretIsShownOnce: by the answer that made the token, which no browser keeps.
func TestASecretIsShownOnce(t *testing.T) {
	t.Parallel()
	h := of(estate())
	w := ask(t, h, "POST", "/ui/access/tokens", "good", url.Values{"name": {"ci"}, "type": {"client"}, "policies": {"a, b"}, "ttl": {"8h"}})
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `value="the-secret-of-it"`)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.NotContains(t, ask(t, h, "GET", "/ui/access/tokens/t1", "good", nil).Body.String(), "the-secret")

	w = ask(t, h, "POST", "/ui/access/tokens", "good", url.Values{"name": {"kept"}, "ttl": {"soon"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "lifetime: &#34;soon&#34; is not a time")
	require.Contains(t, w.Body.String(), `value="kept"`)

	w = ask(t, h, "POST", "/ui/access/tokens/t1/delete", "good", nil)
	require.Contains(t, w.Body.String(), `name="sure" value="1"`)
	require.Contains(t, w.Body.String(), " t1</bdi></strong>")
	w = ask(t, h, "POST", "/ui/access/tokens/t1/delete", "good", url.Values{"sure": {"1"}})
	require.Contains(t, follow(t, h, w, "good"), admin.Text.Done["token-deleted"])
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "POST", "/ui/access/tokens/t1/delete", "good", url.Values{"sure": {"1"}}).Code)
}
