package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fleetAPI answers for a pool that is paused, a machine, a plan and two days, with hostile names.
func fleetAPI() fixed {
	return fixed{
		"/v1/fleet/pools": {http.StatusOK, `[{"Name": "<b>", "PauseCreates": true, "PauseReason": "<i>", "Machines": {"active": 2, "gone": 0},
			"PerHour": 1.5,
			"Today": 3}, {"Name": "gpu", "Problem": "no key"}]`},
		"/v1/fleet/waiting": {http.StatusOK, `[{"Class": "<b>web/api", "Count": 3, "Position": 1, "Of": 2, "Reason": "a machine is bought"}]`},
		"/v1/fleet/plan": {http.StatusOK, `[{"Pool": "std", "Actions": [{"Kind": "create", "Count": 2, "Offering": "<b>", "Reason": "work waits"},
			{"Kind": "drain", "Instance": "m1234567890", "Reason": "idle"}], "Deferred": 4, "Note": "<i>"}]`},
		"/v1/fleet/instances": {http.StatusOK, `[{"ID": "gone-machine", "State": "gone"}, {"ID": "m1234567890", "State": "active", "Pool": "std",
			"Price": 0.5, "Bought": "<b>"}]`},
		"/v1/fleet/cost": {http.StatusOK, `{"By": "day", "Total": 5, "Lines": [{"Key": "2026-01-01", "Cost": 2},
			{"Key": "2026-01-02", "Cost": 3, "Hours": 6}]}`},
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
		"<bdi>&lt;b&gt;</bdi>", "buys nothing, &lt;i&gt;", "2 active", "no key", "1 / 2", "create 2", `<a href="/ui/fleet/machines/m1234567890">`,
		"4 creates wait", `<meter min="0" max="3" value="2" aria-label="2026-01-01">`, "Total: 5.00", `data-live="Instance FleetPool"`,
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
	for _, shown := range []string{"clients", "jobs", "allocations", "evaluations", "deployments", "namespaces", "servers", "events"} {
		require.Contains(t, body, `<a href="/ui/`+shown+`"`, shown)
	}
	for _, hidden := range []string{
		"fleet", "doctor", "environments", "runners", "executions", "play", "services", "volumes", "variables", "access",
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
