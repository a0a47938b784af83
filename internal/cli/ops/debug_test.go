package ops_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestDebug: one archive has what each server and the chosen nodes say; that one of them is down stands in it.
func TestDebug(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/agent/members": `{"ServerRegion": "global", "Members": [
			{"Name": "s0.global", "Status": "alive", "Tags": {"id": "id0", "region": "global"}},
			{"Name": "../s1", "Status": "failed", "Tags": {"id": "id1", "region": "global"}},
			{"Name": "far.other", "Status": "alive", "Tags": {"id": "id9", "region": "other"}}]}`,
		"GET /v1/nodes": `[{"ID": "0123456789", "Name": "n"}, {"ID": "ffff", "Name": "other"}]`, "GET /v1/jobs": `[{"ID": "web"}]`,
		"GET /v1/status/leader": `"here"`, "GET /v1/operator/raft/configuration": `{}`, "GET /v1/regions": `[]`,
		"GET /v1/allocations": `[]`, "GET /v1/evaluations": `[]`, "GET /v1/deployments": `[]`, "GET /v1/namespaces": `[]`,
		"GET /v1/node/pools": `[]`, "GET /v1/operator/scheduler/configuration": `{}`,
	})
	for _, route := range []string{"monitor", "self", "host", "checkup", "pprof/goroutine", "pprof/heap", "pprof/profile"} {
		api.Handle("GET /v1/agent/"+route, answers)
	}
	api.Handle("GET /v1/metrics", answers)
	file := filepath.Join(t.TempDir(), "debug.tar.gz")
	args := "operator debug -duration 1ms -interval 1s -node-id 0123 -output " + file
	api.Check(clitest.Case{
		Args: args, Out: []string{"Collected from 3 agents into " + file}, Not: []string{"far.other"},
		Err: []string{"server/_s1/self.json: it is down", "cluster/autopilot.json: the test has no answer"},
	})
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	files := unpack(t, file)
	for _, agent := range []string{"server/s0.global", "node/n-01234567"} {
		for _, name := range []string{"self.json", "host.json", "metrics-0000.json", "goroutine.txt", "heap.prof", "profile.prof"} {
			require.Contains(t, files[agent+"/"+name], "_id=", "%s/%s", agent, name)
		}
	}
	require.Contains(t, files, "server/s0.global/monitor.log")
	require.Contains(t, files["state/jobs.json"], "web")
	require.NotContains(t, files, "server/_s1/self.json")
	var index struct {
		Agents   []struct{ Name string }
		Problems []struct{ Path, Error string }
	}
	require.NoError(t, json.Unmarshal([]byte(files["index.json"]), &index))
	require.Len(t, index.Agents, 3)
	require.NotEmpty(t, index.Problems)
	api.Check(
		clitest.Case{Args: args, Code: 2, Err: []string{"-output: open " + file}},
		clitest.Case{Args: "operator debug -interval 0s -output " + file + "2", Code: 2, Err: []string{"-interval not 0"}},
	)
	require.NoFileExists(t, file+"2")
}

// answers says what it was asked; the server with the id id1 is down.
func answers(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("server_id") == "id1" {
		http.Error(w, "it is down", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, r.URL.RawQuery) // the client is this process
}

// unpack reads an archive, whose files are all in one folder.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, text := range clitest.Archived(t, path) {
		root, name, ok := strings.Cut(path, "/")
		require.True(t, ok && strings.HasPrefix(root, "drover-debug-"), path)
		require.NotContains(t, name, "..")
		out[name] = text
	}
	return out
}
