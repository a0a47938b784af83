package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/web/admin"
)

// fixed answers the API's requests by their paths; what it does not know is forbidden.
type fixed map[string]struct {
	status int
	body   string
}

func (a fixed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	said, known := a[r.URL.Path]
	if !known {
		said.status, said.body = http.StatusForbidden, "Permission denied"
	}
	w.WriteHeader(said.status)
	_, _ = w.Write([]byte(said.body))
}

const (
	healthPath  = "/v1/operator/autopilot/health"
	membersPath = "/v1/agent/members"
	// badHealth names a server by markup that turns, in JSON.
	badHealth = `{"Healthy": false, "FailureTolerance": 0, "Voters": ["a", "b"], "Servers": [
		{"Name": "<img src=x onerror=alert(1)>\u202e", "Healthy": false, "Voter": true, "StableSince": "0001-01-01T00:00:00Z"},
		{"Name": "second", "Healthy": true, "Voter": true, "Leader": true, "LastIndex": 7, "StableSince": "2026-01-02T03:04:05Z"}]}`
	oneMember = `{"Members": [{"Name": "<b>", "Addr": "127.0.0.1", "Port": 4648, "Status": "alive", "Tags": {"region": "<b>"}}]}`
)

// TestUnhealthyServersAreShown is about an answer of 429, which is how the API says that servers are unhealthy.
func TestUnhealthyServersAreShown(t *testing.T) {
	t.Parallel()
	h := of(fixed{healthPath: {http.StatusTooManyRequests, badHealth}, membersPath: {http.StatusOK, oneMember}})
	w := ask(t, h, "GET", "/ui/servers", "good", nil)
	require.Equal(t, http.StatusOK, w.Code)
	body := w.Body.String()
	inert(t, body)
	require.Contains(t, body, "<p>"+admin.Text.UnhealthyMore+"</p>")
	require.Contains(t, body, `<span class="status bad">unhealthy</span>`)
	require.Contains(t, body, "<td>voter, leader</td>")
	require.Contains(t, body, "2026-01-02 03:04:05")
	require.Contains(t, body, `<span class="status ok">alive</span>`)
	require.NotContains(t, body, "0001-01-01")
}

func TestServersFailByPanel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		api    fixed
		status int
		holds  []string
	}{
		"members only": {
			fixed{membersPath: {http.StatusOK, oneMember}},
			http.StatusOK,
			[]string{text.Forbidden, `<span class="status ok">alive</span>`},
		},
		"health only": {
			fixed{healthPath: {http.StatusOK, `{"Healthy": true}`}},
			http.StatusOK,
			[]string{text.Forbidden, admin.Text.NoServers, `<span class="status ok">healthy</span>`},
		},
		"nothing": {fixed{}, http.StatusForbidden, []string{text.Forbidden}},
		"limited": {
			fixed{healthPath: {http.StatusTooManyRequests, "too many requests"}, membersPath: {http.StatusOK, oneMember}},
			http.StatusOK,
			[]string{"too many requests", `<span class="status ok">alive</span>`},
		},
		"garbage": {
			fixed{healthPath: {http.StatusOK, "<"}, membersPath: {http.StatusOK, oneMember}},
			http.StatusOK,
			[]string{text.Failed, `<span class="status ok">alive</span>`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ask(t, of(c.api), "GET", "/ui/servers", "good", nil)
			require.Equal(t, c.status, w.Code)
			inert(t, w.Body.String())
			for _, s := range c.holds {
				require.Contains(t, w.Body.String(), s)
			}
			require.Equal(t, 1, strings.Count(w.Body.String(), "<h1>"))
		})
	}
}
