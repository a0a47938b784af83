package doctor_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestTheDoctorsReportOfACluster: what the agent found of its servers is printed, and the exit code is the worst of it.
func TestTheDoctorsReportOfACluster(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{"GET /v1/doctor": `{"State": "broken", "Findings": [
		{"Check": "leader", "State": "ok", "Says": "s0.global leads."},
		{"Check": "answers", "State": "broken", "Server": "s2.global", "Says": "it does not answer"}]}`})
	api.Check(
		clitest.Case{
			Args: "doctor -cluster", Code: 1, Out: []string{"leader ok - s0.global leads.", "answers broken s2.global it does not answer"},
			Err: []string{"something of the cluster is broken"},
		},
		clitest.Case{
			Args: "doctor -cluster -t {{range.}}{{.Check}}={{.State}};{{end}}", Code: 1, Out: []string{"leader=ok;answers=broken;"},
		},
	)
	api.Set("GET /v1/doctor", `{"State": "ok", "Findings": [{"Check": "quorum", "State": "ok", "Says": "One server votes"}]}`)
	api.Check(clitest.Case{Args: "doctor -cluster", Out: []string{"One server votes"}})
	api.Set("GET /v1/doctor", `{"State": "weak", "Findings": [{"Check": "quorum", "State": "weak", "Says": "one more failure"}]}`)
	api.Check(clitest.Case{Args: "doctor -cluster", Code: 5, Err: []string{"not through everything that may come"}})
	api.Set("GET /v1/doctor", "! 500 no")
	api.Check(clitest.Case{Args: "doctor -cluster", Code: 1, Err: []string{"no"}})
}
