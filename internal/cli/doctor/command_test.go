package doctor_test

import (
	"context"
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/cli/doctor"
)

// TestTheDoctorsReport examines this machine, with probes that say what is to be said.
func TestTheDoctorsReport(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/agent/self": `{"stats": {"client": {"node_id": "n1"}}}`, "GET /v1/nodes": `[{"ID": "n1"}]`,
		"GET /v1/node/n1": `{"ID": "n1", "Drivers": {"docker": {"HealthDescription": "no daemon"}, "sandbox": {"Detected": true,
			"Healthy": true}}}`,
	})
	state, overlay := "contained", true
	api.Parts.Doctor = doctor.Probes{
		Try: func(_ context.Context, dir string, tell func(program, state, says string)) error {
			tell("fork bomb", state, "in "+dir)
			return nil
		},
		Overlay: func() bool { return overlay },
		Groups:  func() (string, []string) { return "cgroup v2", []string{"no cpuset"} },
	}
	data := t.TempDir()
	api.Check(
		clitest.Case{
			Args: "doctor -scratch /scratch -data-dir " + data, Out: []string{
				"Part State Says\n", "kernel ok Linux ", "control groups weak cgroup v2; no cpuset\n", "overlay ok ", " free at " + data,
				"Hostile program State Says\nfork bomb contained in /scratch\n", "Driver of the agent State Says\ndocker missing no daemon\nsandbox ok",
			},
		},
		clitest.Case{Args: "doctor -quick", Out: []string{"kernel"}, Not: []string{"fork bomb"}},
		clitest.Case{Args: "doctor -quick -json", Out: []string{`"Check": "kernel"`, `"Kind": "driver"`}},
		clitest.Case{Args: "doctor -quick -t {{range.}}{{.Check}};{{end}}", Out: []string{"kernel;rights;control groups;"}},
		clitest.Case{Args: "doctor -quick -data-dir /no/such", Out: []string{"disk weak /no/such: "}},
		clitest.Case{Args: "doctor now", Code: 2, Err: []string{"1 argument given"}},
	)
	state = "escaped"
	api.Check(clitest.Case{Args: "doctor", Code: 1, Err: []string{"Error: sandboxes are not safe here: fork bomb"}})
	overlay = false
	api.Check(clitest.Case{Args: "doctor -quick", Code: 1, Err: []string{"sandboxes cannot run here, for want of: overlay"}})
	overlay = true
	api.Set("GET /v1/agent/self", "! 500 broken")
	api.Check(clitest.Case{Args: "doctor -quick", Out: []string{"No agent answers, so this is what was found from outside of one."}})
	api.Parts.Doctor.Groups = nil
	api.Check(clitest.Case{Args: "doctor -quick", Out: []string{"control groups weak not looked at\n"}})
}
