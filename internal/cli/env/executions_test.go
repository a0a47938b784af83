package env_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestExecutionsAreListed: the flags become the query, and who reads the list hears of what is not in it.
func TestExecutionsAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	asked := ""
	api.Handle("GET /v1/executions", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		w.Header().Set("Drover-Total", "7")
		w.Header().Set("X-Nomad-NextToken", "5..x2")
		w.Header().Set("Drover-Silent-Servers", "b, c")
		_, _ = w.Write([]byte(`[{"id": "x1", "namespace": "default", "environment": "py", "runnerId": "py-1", "running": true,
			"spec": {"argv": ["sleep", "1\u001b[2J"]}},
			{"id": "x2", "namespace": "a", "environment": "go", "runnerId": "a~go-1", "spec": {"argv": ["false"]},
			"receipt": {"cause": "exited", "exitCode": 1, "wall": 1500000, "peakMemory": 2048}}]`))
	})
	api.Check(
		clitest.Case{
			Args: "execution list -namespace * -env py -status running -status oom -exit nonzero -search a -sort -wall -per-page 2 -page-token 1..x",
			Out:  []string{"running", "py-1", "sleep 1 [2J", "exit 1", "2ms", "a~go"},
			Err:  []string{"There are 7", "-page-token 5..x2", "did not answer: b, c"},
		},
		clitest.Case{Args: "execution list -since noon", Code: 2, Err: []string{"-since: want a time"}},
	)
	require.Equal(t, "environment=py&exit=nonzero&namespace=%2A&next_token=1..x&per_page=2&search=a&sort=-wall"+
		"&status=running&status=oom", asked)
}
