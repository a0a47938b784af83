package ops_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestAttention: the verdict is the exit code, and what a tenant wrote stays in its line.
func TestAttention(t *testing.T) {
	t.Parallel()
	const areas = `"areas": [{"name": "nodes", "state": "weak", "says": "1 of 2 nodes take work, 1 away."}]`
	const concerns = `"concerns": [{"code": "node.down", "area": "nodes", "state": "weak", "subject": "n1", "count": 1,
		"says": "node a\u001b[31mb\nc is down", "next": "drover node status n1"}]`
	api := clitest.Serve(t, map[string]string{"GET /v1/attention": `{"state": "weak", ` + areas + `, ` + concerns + `}`})
	api.Check(
		clitest.Case{
			Args: "attention", Code: 5, Out: []string{
				"Area State Says\nnodes weak 1 of 2 nodes take work, 1 away.\n", "weak - node a", "is down drover node status n1\n",
			},
			Not: []string{"\x1b"}, Err: []string{"something of it wants attention"},
		},
		clitest.Case{Args: "attention -json", Code: 5, Out: []string{`"code": "node.down"`}},
		clitest.Case{Args: "attention now", Code: 2},
	)
	api.Set("GET /v1/attention", `{"state": "broken", `+areas+`}`)
	api.Check(clitest.Case{Args: "attention -t {{.State}}", Code: 1, Out: []string{"broken"}})
	api.Set("GET /v1/attention", `{"state": "ok", `+areas+`, "concerns": []}`)
	api.Check(clitest.Case{Args: "attention", Out: []string{"nodes weak"}, Not: []string{"What"}})
	api.Set("GET /v1/attention", `{"state": "ok", "areas": [], "concerns": []}`)
	api.Check(clitest.Case{Args: "attention", Out: []string{"The token may see nothing of the cluster."}})
	api.Set("GET /v1/attention", "! 503 no leader")
	api.Check(clitest.Case{Args: "attention", Code: 1, Err: []string{"no leader"}})
}
