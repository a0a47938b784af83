package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// recording has what Nomad's own command line asks, what Nomad answers, and how the command ends.
const recording = "../e2e/testdata/nomad-cli.txt"

// otherCodes are the exit codes in which we differ from Nomad on purpose.
var otherCodes = map[string]struct {
	code int
	why  string
}{
	"job plan web.nomad.hcl":              {0, "a plan with changes is a success; -detailed-exitcode tells them apart"},
	"var put -in hcl a/b k=v":             {1, "the cluster of this test has the variable already"},
	"job plan -var v=2 web.nomad.hcl":     {0, "the same"},
	"status nothing":                      {3, "what is not there has a code of its own"},
	"quota list":                          {0, "there they are Enterprise's"},
	"job status nothing":                  {3, "the same"},
	"alloc status 00000000":               {3, "the same"},
	"node status 00000000":                {3, "the same"},
	"operator snapshot inspect snap.gz":   {2, "a file that cannot be opened is wrong usage"},
	"monitor -json=false -log-level INFO": {0, "there it was ended after a while (124); here the log ends"},

	"job action -job web -group g -task t hello": {3, "the job of this test has no such action"},
}

type recorded struct {
	args string
	code int
}

// commands reads the recorded commands with their exit codes.
func commands(t *testing.T) (list []recorded) {
	t.Helper()
	text, err := os.ReadFile(recording)
	require.NoError(t, err)
	section := regexp.MustCompile(`(?ms)^\$ nomad ([^\n]*)$.*?^exit (\d+)$`)
	for _, m := range section.FindAllStringSubmatch(string(text), -1) {
		code, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		list = append(list, recorded{m[1], code})
	}
	require.Greater(t, len(list), 80)
	return list
}

// cluster answers as the recorded one did, as far as exit codes depend on it.
func cluster(t *testing.T) *clitest.API {
	t.Helper()
	const alloc, node = "410a6e2e-6666-67af-b7a9-72c976c39df2", "a5df5710-ebc1-ba54-0e49-7ed4cd55d65d"
	const deployment, evaluation = "c9e1a7a0-5f18-1558-d021-09db9728cf4d", "c0919a98-4fd5-4946-37c6-f92ca053af41"
	answers := map[string]string{
		"GET /v1/allocations": `[{"ID": "` + alloc + `"}]`, "GET /v1/nodes": `[{"ID": "` + node + `"}]`,
		"GET /v1/allocation/" + alloc: `{"ID": "` + alloc + `", "ClientStatus": "running", "TaskGroup": "g",
			"Job": {"TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t"}]}]}}`,
		"GET /v1/node/" + node: `{"ID": "` + node + `"}`, "GET /v1/agent/self": `{"stats": {"client": {"node_id": "` + node + `"}}}`,
		"GET /v1/deployments": `[{"ID": "` + deployment + `"}]`, "GET /v1/evaluations": `[{"ID": "` + evaluation + `"}]`,
		"GET /v1/node/pools":     `[{"Name": "gpu"}, {"Name": "default"}]`,
		"GET /v1/namespace/team": `{"Name": "team"}`, "PUT /v1/namespace": `{}`,
		"GET /v1/jobs":               `[{"ID": "web"}, {"ID": "par"}, {"ID": "per"}]`,
		"GET /v1/job/web":            `{"ID": "web", "TaskGroups": [{"Name": "g"}]}`,
		"GET /v1/job/par":            `{"ID": "par", "ParameterizedJob": {}}`,
		"GET /v1/job/per":            `{"ID": "per", "Periodic": {}}`,
		"PUT /v1/jobs":               `{"EvalID": "` + evaluation + `"}`,
		"PUT /v1/search":             `{"Matches": {}}`,
		"GET /v1/job/web/deployment": `{"ID": "` + deployment + `", "Status": "running"}`, "GET /v1/job/web/deployments": "[]",
		"GET /v1/job/web/versions": `{"Versions": [{"ID": "web"}]}`,
		"PUT /v1/job/web/plan": `{"Diff": {"Type": "Edited", "ID": "web"},
			"Annotations": {"DesiredTGUpdates": {"g": {"Place": 1}}}}`,
		"GET /v1/client/fs/stat/" + alloc:          `{"IsDir": true}`,
		"GET /v1/operator/scheduler/configuration": `{"SchedulerConfig": {}}`, "PUT /v1/operator/scheduler/configuration": `{"Updated": true}`,
		"GET /v1/operator/autopilot/configuration": `{}`, "GET /v1/operator/autopilot/health": `{"Healthy": true}`,
		"PUT /v1/var/a/b": `! 409 {"Path": "a/b"}`, "GET /v1/var/a/b": `{"Path": "a/b"}`,
		"GET /v1/agent/keyring/list": "! 500 1/1 nodes reported failure",
		"GET /v1/status/leader":      `""`, "GET /v1/agent/monitor": "", "GET /v1/client/fs/logs/" + alloc: "hi",
	}
	for _, path := range []string{ // that answer with nothing
		"GET /v1/job/web/evaluations", "GET /v1/job/web/allocations", "GET /v1/node/" + node + "/allocations", "GET /v1/node/pool/default/nodes",
		"GET /v1/node/pool/default/jobs", "GET /v1/agent/servers",
		"GET /v1/operator/keyring/keys", "GET /v1/vars", "GET /v1/namespaces", "GET /v1/quotas", "GET /v1/volumes",
		"GET /v1/client/fs/ls/" + alloc,
		"GET /v1/evaluation/" + evaluation + "/allocations", "GET /v1/services", "GET /v1/scaling/policies",
	} {
		answers[path] = "[]"
	}
	for _, path := range []string{
		"GET /v1/job/web/scale", "PUT /v1/job/web/versions/good/tag", "DELETE /v1/job/web/versions/good/tag", "GET /v1/job/web/summary",
		"PUT /v1/deployment/promote/" + deployment, "GET /v1/client/allocation/" + alloc + "/stats", "GET /v1/client/stats",
		"GET /v1/client/allocation/" + alloc + "/checks",
		"PUT /v1/client/allocation/" + alloc + "/signal", "PUT /v1/client/allocation/" + alloc + "/restart", "PUT /v1/job/web/scale",
		"PUT /v1/deployment/pause/" + deployment, "PUT /v1/job/web/revert", "PUT /v1/job/web/evaluate", "PUT /v1/job/par/dispatch",
		"PUT /v1/job/per/periodic/force", "PUT /v1/node/" + node + "/eligibility", "PUT /v1/node/" + node + "/drain",
		"DELETE /v1/node/pool/gpu", "PUT /v1/node/pools", "GET /v1/client/metadata", "PUT /v1/client/metadata", "DELETE /v1/namespace/team",
		"DELETE /v1/job/web", "DELETE /v1/job/par", "DELETE /v1/job/per",
		"PUT /v1/validate/job", "DELETE /v1/var/a/b", "GET /v1/agent/members", "GET /v1/operator/raft/configuration", "PUT /v1/system/gc",
		"PUT /v1/system/reconcile/summaries", "GET /v1/metrics",
	} {
		answers[path] = "{}"
	}
	api := clitest.Serve(t, answers)
	api.Handle("GET /v1/client/allocation/"+alloc+"/exec", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err == nil {
			_ = c.Write(r.Context(), websocket.MessageText, []byte(`{"exited": true}`)) // the client tells
			c.CloseRead(r.Context())
		}
	})
	return api
}

const jobFile = `variable "v" {
  default = "1"
}
job %q {
  group "g" {
    task "t" {
      driver = "raw_exec"
    }
  }
}
`

// TestNomadsCommandsEndAsThere: scripts that are written for Nomad's command line look at exit codes.
func TestNomadsCommandsEndAsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"web", "par", "per"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".nomad.hcl"), fmt.Appendf(nil, jobFile, name), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pool.hcl"), []byte(`node_pool "gpu" { description = "x" }`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ns.hcl"), []byte(`name = "team"`), 0o600))
	api := cluster(t)
	for _, c := range commands(t) {
		want, why := c.code, "as Nomad"
		if other, ok := otherCodes[c.args]; ok {
			want, why = other.code, other.why
		}
		args := strings.Fields(c.args)
		for i, a := range args {
			if strings.HasSuffix(a, ".nomad.hcl") || a == "ns.hcl" || a == "pool.hcl" {
				args[i] = filepath.Join(dir, a)
			}
		}
		r := api.Run(args...)
		require.Equal(t, want, r.Code, "nomad %s (%s): %s", c.args, why, r.Err)
	}
}
