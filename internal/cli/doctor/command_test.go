package doctor_test

import (
	"context"
	"testing"

	"github.com/drover-project/drover/cluster"
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
	state, overlay := "contained", cluster.OK
	api.Parts.Doctor = doctor.Probes{
		Try: func(_ context.Context, dir string, tell func(program, state, says string)) error {
			tell("fork bomb", state, "in "+dir)
			return nil
		},
		Machine: func(_ context.Context, dir string) []cluster.Part {
			return []cluster.Part{
				{Check: "kernel", State: cluster.OK, Says: "Linux 6", Needed: true},
				{Check: "control groups", State: cluster.Weak, Says: "no cpuset"},
				{Check: "overlay", State: overlay, Says: "of files", Needed: true},
				{Check: "disk", State: cluster.OK, Says: "in " + dir},
			}
		},
	}
	data := t.TempDir()
	api.Check(
		clitest.Case{
			Args: "doctor -scratch /scratch -data-dir " + data, Out: []string{
				"Part State Says\n", "kernel ok Linux ", "control groups weak no cpuset\n", "overlay ok ", "disk ok in " + data,
				"Hostile program State Says\nfork bomb contained in /scratch\n", "Driver of the agent State Says\ndocker missing no daemon\nsandbox ok",
			},
		},
		clitest.Case{Args: "doctor -quick", Out: []string{"kernel"}, Not: []string{"fork bomb"}},
		clitest.Case{Args: "doctor -quick -json", Out: []string{`"Check": "kernel"`, `"Kind": "driver"`}},
		clitest.Case{Args: "doctor -quick -t {{range.}}{{.Check}};{{end}}", Out: []string{"kernel;control groups;overlay;"}},
		clitest.Case{Args: "doctor now", Code: 2, Err: []string{"1 argument given"}},
	)
	state = "escaped"
	api.Check(clitest.Case{Args: "doctor", Code: 1, Err: []string{"Error: sandboxes are not safe here: fork bomb"}})
	overlay = cluster.Missing
	api.Check(clitest.Case{Args: "doctor -quick", Code: 1, Err: []string{"sandboxes cannot run here, for want of: overlay"}})
	overlay = cluster.OK
	api.Set("GET /v1/agent/self", "! 500 broken")
	api.Check(clitest.Case{Args: "doctor -quick", Out: []string{"No agent answers, so this is what was found from outside of one."}})
	api.Parts.Doctor.Machine = nil
	api.Check(clitest.Case{
		Args: "doctor -quick", Code: 1, Out: []string{"agents and their tasks run on Linux"}, Err: []string{"for want of: kernel"},
	})
}

// TestWhatNodesFound: findings in the same words stand together, and the exit code is of the worst.
func TestWhatNodesFound(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/doctor/nodes": `{"State": "weak", "Nodes": 12, "Silent": 1, "Findings": [{"Check": "rights", "State": "weak", "Says": "not root",
			"Count": 11, "Nodes": [{"ID": "1", "Name": "a"}, {"ID": "2", "Name": "b"}]}]}`,
	})
	api.Check(
		clitest.Case{
			Args: "doctor -nodes", Code: 5, Err: []string{"something of them is weak"},
			Out: []string{
				"Check State Nodes Says\n", "rights weak a, b and 9 more not root\n", "Nodes looked at: 12.", "1 of them do not say",
			},
		},
		clitest.Case{Args: "doctor -nodes -json", Code: 5, Out: []string{`"Count": 11`}},
		clitest.Case{Args: "doctor -nodes -cluster", Code: 2, Err: []string{"nodes", "cluster"}},
	)
	api.Set("GET /v1/doctor/nodes", `{"State": "ok", "Nodes": 3, "Findings": []}`)
	api.Check(clitest.Case{
		Args: "doctor -node web", Out: []string{"Nothing is wrong with them.\nNodes looked at: 3."}, Not: []string{"Check", "older"},
	})
	api.Set("GET /v1/doctor/nodes", `{"State": "broken", "Nodes": 3, "Findings": []}`)
	api.Check(clitest.Case{Args: "doctor -nodes", Code: 1, Err: []string{"something of a node is broken"}})
}
