package doctor_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/clock"
)

const (
	twoMembers = `{"ServerRegion": "global", "Members": [
		{"Name": "s0.global", "Status": "alive", "Tags": {"id": "id0", "region": "global"}},
		{"Name": "s1.global", "Status": "alive", "Tags": {"id": "id1", "region": "global"}},
		{"Name": "far.other", "Status": "alive", "Tags": {"id": "id9", "region": "other"}}]}`
	threeVoters = `{"Servers": [{"ID": "id0", "Node": "s0.global", "Voter": true}, {"ID": "id1", "Node": "s1.global", "Voter": true},
		{"ID": "id2", "Node": "s2.global", "Voter": true}]}`
	twoVoters = `{"Servers": [{"ID": "id0", "Voter": true}, {"ID": "id1"}]}`
)

// TestTheDoctorsReportOfACluster: each server of the region is asked by its id, and what gossip does not know is told.
func TestTheDoctorsReportOfACluster(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/agent/members": twoMembers, "GET /v1/operator/raft/configuration": threeVoters,
	})
	api.Handle("GET /v1/agent/checkup", func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("server_id")
		if id != "id0" && id != "id1" {
			http.Error(w, "asked for "+id, http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(cluster.Checkup{ID: id, Leader: "id0", Version: "1", Now: clock.Wall{}.Now()})
	})
	api.Check(
		clitest.Case{
			Args: "doctor -cluster", Code: 1, Not: []string{"far.other", "asked for"}, Out: []string{
				"leader ok - s0.global leads.", "quorum weak - 2 of 3 voters answer: one more failure stops the cluster",
				"answers ok s1.global It answers", "answers broken s2.global it does not answer (unknown): gossip knows nothing of it",
			},
			Err: []string{"something of the cluster is broken"},
		},
		clitest.Case{
			Args: "doctor -cluster -t {{range.}}{{.Check}}={{.State}};{{end}}", Code: 1, Out: []string{"leader=ok;quorum=weak;cluster=ok;"},
		},
	)
	api.Set("GET /v1/operator/raft/configuration", twoVoters)
	api.Check(clitest.Case{Args: "doctor -cluster", Out: []string{"One server votes"}})
	api.Set("GET /v1/operator/raft/configuration", `{"Servers": [{"ID": "id0", "Voter": true}, {"ID": "id1", "Voter": true}]}`)
	api.Check(clitest.Case{Args: "doctor -cluster", Code: 5, Err: []string{"not through everything that may come"}})
	api.Set("GET /v1/agent/members", "! 500 no")
	api.Check(clitest.Case{Args: "doctor -cluster", Code: 1, Err: []string{"no"}})
}
