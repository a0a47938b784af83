package web

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fleetAPI answers for a pool that is paused, a machine, a plan and two days, with hostile names.
func fleetAPI() fixed {
	return fixed{
		"/v1/fleet/pools": {http.StatusOK, `[{"Name": "<b>", "PauseCreates": true, "PauseReason": "<i>", "Machines": {"active": 2, "gone": 0},
			"PerHour": 1.5,
			"Today": 3}, {"Name": "gpu", "Problem": "no key", "Today": 3, "Policy": {"Budget": {"PerDay": 10}}}]`},
		"/v1/fleet/waiting": {http.StatusOK, `[{"Class": "<b>web/api", "Count": 3, "Position": 1, "Of": 2, "Reason": "a machine is bought"}]`},
		"/v1/fleet/plan": {http.StatusOK, `[{"Pool": "std", "Actions": [{"Kind": "create", "Count": 2, "Offering": "<b>", "Reason": "work waits"},
			{"Kind": "drain", "Instance": "m1234567890", "Reason": "idle"}], "Deferred": 4, "Note": "<i>"}]`},
		"/v1/fleet/instances": {http.StatusOK, `[{"ID": "gone-machine", "State": "gone"}, {"ID": "m1234567890", "State": "active", "Pool": "std",
			"Price": 0.5, "Bought": "<b>"}]`},
		"/v1/fleet/timeline": {http.StatusOK, `{"From": "2026-01-01T00:00:00Z", "To": "2026-01-02T00:00:00Z", "More": 3, "Machines": [
			{"ID": "m1234567890", "State": "gone", "Pool": "<b>", "Charged": 2, "Bought": "work <i> waits", "Reason": "idle", "Phases": [
			{"Name": "asked", "From": "2025-12-31T23:00:00Z", "To": "2026-01-01T01:00:00Z"},
			{"Name": "draining", "From": "2026-01-01T01:00:00Z", "To": "2026-01-01T02:00:00Z", "Reason": "<u>"}]},
			{"ID": "m2", "State": "active", "Work": 2, "Phases": [{"Name": "active", "From": "2026-01-01T01:00:00Z"}]}]}`},
		"/v1/fleet/cost": {http.StatusOK, `{"By": "day,job", "Total": 5, "Lines": [
			{"Key": "2026-01-01", "Of": "idle", "Cost": 1.5}, {"Key": "2026-01-01", "Of": "team/<b>", "Cost": 0.5},
			{"Key": "2026-01-02", "Of": "j1", "Cost": 1, "Hours": 6}, {"Key": "2026-01-02", "Of": "j2", "Cost": 0.5},
			{"Key": "2026-01-02", "Of": "j3", "Cost": 0.5}, {"Key": "2026-01-02", "Of": "j4", "Cost": 0.5},
			{"Key": "2026-01-02", "Of": "j5", "Cost": 0.25}, {"Key": "2026-01-02", "Of": "j6", "Cost": 0.25}]}`},
		"/v1/fleet/instance/m1": {http.StatusOK, `{"Instance": {"ID": "m1", "State": "draining", "NodeID": "n1"}, "Text": ["It was <b> bought."],
			"Jobs": [{"Namespace": "ns", "ID": "web"}], "History": [{"At": "2026-01-02T03:04:05Z", "What": "create", "Reason": "<b>"}]}`},
	}
}

func TestTheFleet(t *testing.T) {
	t.Parallel()
	h := of(fleetAPI())
	w := ask(t, h, "GET", "/ui/fleet", "good", nil)
	require.Equal(t, http.StatusOK, w.Code)
	body := w.Body.String()
	inert(t, body)
	for _, s := range []string{
		"<bdi>&lt;b&gt;</bdi>", "buys nothing, &lt;i&gt;", "2 active", "no key", "1 / 2", "create 2",
		`<a href="/ui/fleet/machines/m1234567890">`,
		"4 creates wait", "3.00 of 10.00, 7.00 left",
		`<meter min="0" max="3" value="2" aria-label="2026-01-01">`, "Total: 5.00",
		`<bdi>idle</bdi> 1.50, <a href="/ui/jobs/%3Cb%3E@team"><bdi>team/&lt;b&gt;</bdi></a> 0.50`,
		"<bdi>j4</bdi> 0.50, 2 more: 0.50", `data-live="Instance FleetPool"`,
	} {
		require.Contains(t, body, s)
	}
	require.Less(t, strings.Index(body, "2026-01-02"), strings.Index(body, "2026-01-01"), "the newest day first")
	require.Less(t, strings.Index(body, "m1234567"), strings.Index(body, "gone-mac"), "what is there first")

	body = ask(t, h, "GET", "/ui/fleet/machines/m1", "good", nil).Body.String()
	inert(t, body)
	for _, s := range []string{
		"It was &lt;b&gt; bought.", `<a href="/ui/jobs/web@ns">`, "2026-01-02 03:04:05",
		`<span class="status warn">draining</span>`,
	} {
		require.Contains(t, body, s)
	}
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/fleet", "", nil).Code)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/fleet/machines/m1", "", nil).Code)
}

// TestTheTimelineOfMachines: bars begin and end with the span, and are there in words, too; a failure leaves the filters.
func TestTheTimelineOfMachines(t *testing.T) {
	t.Parallel()
	api := fleetAPI()
	body := ask(t, of(api), "GET", "/ui/fleet/timeline?pool=gpu&since=1h", "good", nil).Body.String()
	inert(t, body)
	for _, s := range []string{
		`data-gantt="{&#34;pieces&#34;:[{&#34;tone&#34;:&#34;idle&#34;,&#34;from&#34;:0,&#34;to&#34;:3600000},{&#34;tone&#34;:&#34;lost&#34;,` +
			`&#34;from&#34;:3600000,&#34;to&#34;:7200000}],&#34;span&#34;:86400000}"`,
		"asked 2h, draining 1h (&lt;u&gt;)", "work &lt;i&gt; waits", "busy: 2", "3 more were there", "charts.js",
		`<option value="gpu" selected="">`, `<option value="1h" selected="">`, `data-live="Instance FleetPool"`,
	} {
		require.Contains(t, body, s)
	}
	delete(api, "/v1/fleet/timeline")
	body = ask(t, of(api), "GET", "/ui/fleet/timeline?pool=gpu", "good", nil).Body.String()
	require.Contains(t, body, text.Forbidden)
	require.Contains(t, body, `<option value="gpu" selected="">`)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/fleet/timeline", "", nil).Code)
}

// TestTheFleetFailsBySection: what cannot be told leaves the rest of the page as it is.
func TestTheFleetFailsBySection(t *testing.T) {
	t.Parallel()
	api := fleetAPI()
	delete(api, "/v1/fleet/plan")
	w := ask(t, of(api), "GET", "/ui/fleet", "good", nil)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), text.Forbidden)
	require.Contains(t, w.Body.String(), "Total: 5.00")
}

// TestTheBarHasWhatTheTokenMaySee: pages of parts of the cluster of which the token may see nothing are not offered.
func TestTheBarHasWhatTheTokenMaySee(t *testing.T) {
	t.Parallel()
	api := fixed{"/v1/rights": {http.StatusOK, `{"node": "read", "jobs": true}`}}
	body := ask(t, of(api), "GET", "/ui/nothing", "good", nil).Body.String()
	for _, shown := range []string{
		"clients", "jobs", "allocations", "evaluations", "deployments", "namespaces", "servers", "events", "doctor",
	} {
		require.Contains(t, body, `<a href="/ui/`+shown+`"`, shown)
	}
	for _, hidden := range []string{
		"fleet", "environments", "runners", "executions", "play", "services", "volumes", "variables", "access",
	} {
		require.NotContains(t, body, `<a href="/ui/`+hidden+`"`, hidden)
	}
	api["/v1/rights"] = struct {
		status int
		body   string
	}{http.StatusOK, `{"management": true}`}
	body = ask(t, of(api), "GET", "/ui/nothing", "good", nil).Body.String()
	for _, shown := range []string{"fleet", "doctor", "variables", "access"} {
		require.Contains(t, body, `<a href="/ui/`+shown+`"`, shown)
	}
}

// TestTheSimulator: a pool's policy is there to be changed, what came of it is drawn, what was typed stays, and what is saved goes to the
// pool that it names.
func TestTheSimulator(t *testing.T) {
	t.Parallel()
	var asked []string
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path)
		switch {
		case r.Method == http.MethodPut && r.URL.Query().Get("was") == "7":
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"message": "it is at 9 by now"}`)
		case r.Method == http.MethodPost && strings.Contains(string(content), `"Seed":9`):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"message": "<b> too much"}`)
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, `[{"Rules": "drover", "Cost": 4, "Bound": 2, "Cloud": "<b>", "Stopped": [{"What": "<i>", "Waited": 1000000000}],
				"Points": [{"At": 0, "Machines": 1}, {"At": 60000000000, "Machines": 2, "PerHour": 0.5}]}]`)
		default:
			_, _ = io.WriteString(w, `{"Name": "std", "ModifyIndex": 9, "Policy": {"Name": "<b>", "Provider": "ec2"}}`)
		}
	}))
	body := ask(t, h, "GET", "/ui/fleet/simulate?pool=std", "good", nil).Body.String()
	inert(t, body)
	require.Contains(t, body, "&#34;Name&#34;: &#34;\\u003cb\\u003e&#34;")
	form := url.Values{
		"policy": {`{"Name": "std"}`}, "workload": {"burst"}, "per-hour": {"5"}, "run": {"1m"}, "length": {"1h"}, "seed": {"1"},
		"compare": {"on"},
	}
	body = ask(t, h, "POST", "/ui/fleet/simulate", "good", form).Body.String()
	inert(t, body)
	for _, holds := range []string{
		"2.00", "&lt;i&gt; kept work waiting, by 1s", `data-chart="{`, "Save as the policy of pool “std”",
		`<option value="burst" selected="">`,
	} {
		require.Contains(t, body, holds)
	}
	form.Set("seed", "9")
	body = ask(t, h, "POST", "/ui/fleet/simulate", "good", form).Body.String()
	require.Contains(t, body, "&lt;b&gt; too much")
	require.Contains(t, body, "{&#34;Name&#34;: &#34;std&#34;}", "it is still there")
	for field, wrong := range map[string]string{"policy": "{", "per-hour": "many", "run": "long", "length": "", "seed": "-1"} {
		bad := maps.Clone(form)
		bad.Set(field, wrong)
		asked = nil
		body = ask(t, h, "POST", "/ui/fleet/simulate", "good", bad).Body.String()
		require.Contains(t, body, "That did not work", field)
		require.NotContains(t, strings.Join(asked, "\n"), "simulate")
	}
	form.Set("save", "1")
	form.Set("of", "std")
	form.Set("was", "7") // somebody else saved one since
	conflict := ask(t, h, "POST", "/ui/fleet/simulate", "good", form)
	require.Equal(t, http.StatusOK, conflict.Code)
	inert(t, conflict.Body.String())
	for _, holds := range []string{
		"it is at 9 by now", "The policy by now", "{&#34;Name&#34;: &#34;std&#34;}", `name="was" value="9"`, `name="of" value="std"`,
	} {
		require.Contains(t, conflict.Body.String(), holds, "both are there, and nothing typed is lost")
	}
	form.Set("was", "9")
	w := ask(t, h, "POST", "/ui/fleet/simulate", "good", form)
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Contains(t, strings.Join(asked, "\n"), "PUT /v1/fleet/pool/std")
}
