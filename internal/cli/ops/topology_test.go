package ops_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestTopology counts nodes by what they have in common; what a node says of itself stays in its line.
func TestTopology(t *testing.T) {
	t.Parallel()
	const whole = `{"index": 7, "layout": "x", "ids": ["a", "b", "c"], "names": ["a", "b", "c"], "pools": ["p\u001b[31m\nq", ""],
		"datacenters": ["dc1"], "classes": [""], "pool": [0, 0, 1], "datacenter": [0, 0, 0], "class": [0, 0, 0], "states": "rxd",
		"cpu": [10, 30, 0], "memory": [100, 0, 5], "allocations": [2, 1, 0]}`
	api := clitest.Serve(t, map[string]string{"GET /v1/topology": whole})
	api.Check(
		clitest.Case{Args: "topology", Out: []string{
			"2 1 0 0 1 0 3 20 % (30 %) 50 % (100 %)\n", "- 1 0 0 1 0 0 0 0 % (0 %) 5 % (5 %)\n",
		}, Not: []string{"\x1b"}},
		clitest.Case{Args: "topology -by datacenter", Out: []string{"dc1 3 1 0 1 1 0 3 13 % (30 %) 35 % (100 %)\n"}},
		clitest.Case{Args: "topology -by rack", Code: 2, Err: []string{`-by: "rack" is none of pool, datacenter, class`}},
		clitest.Case{Args: "topology -json", Out: []string{`"states": "rxd"`}},
		clitest.Case{Args: "topology now", Code: 2},
	)
	api.Set("GET /v1/topology", `{"index": 1, "layout": "y", "states": "", "cpu": [], "memory": [], "allocations": []}`)
	api.Check(clitest.Case{Args: "topology", Out: []string{"No node is there."}})
	api.Set("GET /v1/topology", "! 403 Permission denied")
	api.Check(clitest.Case{Args: "topology", Code: 1, Err: []string{"Permission denied"}})
}
