package env_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{"GET /v1/metrics/history": `{"missing": 2, "pools": [
		{"environment": "py", "namespace": "team", "warm": [-1, 3, 1], "claimed": [-1, 0, 7], "waiting": [],
			"claims": {"all": {"count": 9, "p50": 1234567, "p95": 12345678, "p99": 1234567890}}, "starts": {},
			"firstBytes": {"all": {"count": 4, "p50": 2000000, "p95": 3000000, "p99": 4000000}}}]}`})
	api.Check(
		clitest.Case{
			Args: "env history -since 10m -step 20s py", Asks: []string{"GET /v1/metrics/history?environment=py&since=10m0s&step=20s"},
			Out: []string{"team~py 1 7 - 9 1.2ms 12ms 1.2s 0 - - - 4 2ms 3ms 4ms"}, Err: []string{"Nothing is kept of 2 other environments."},
		},
		clitest.Case{Args: "env history -json", Out: []string{`"count": 9`}},
		clitest.Case{Args: "env history a b", Code: 2},
	)
	api.Set("GET /v1/metrics/history", `{"pools": []}`)
	api.Check(clitest.Case{Args: "env history", Out: []string{"Nothing is known of that time"}})
}
