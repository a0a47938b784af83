package cli_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestWhateverAnIDBelongsToIsShown asks the search first, and shows the one thing that it finds.
func TestWhateverAnIDBelongsToIsShown(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/jobs":          `[{"ID": "web", "Namespace": "default"}]`,
		"GET /v1/job/web":       `{"ID": "web", "Name": "the web", "Namespace": "default"}`,
		"GET /v1/nodes":         `[{"ID": "n1", "Name": "box"}]`,
		"GET /v1/node/n1":       `{"ID": "n1", "Name": "box"}`,
		"PUT /v1/search":        `{"Matches": {"jobs": ["web"]}}`,
		"GET /v1/allocation/a1": `{"ID": "a1", "Name": "web.g[0]"}`, "GET /v1/allocations": `[{"ID": "a1"}]`,
		"GET /v1/evaluations": `[{"ID": "e1", "JobID": "web"}]`, "GET /v1/evaluation/e1/allocations": `[]`,
		"GET /v1/deployments": `[{"ID": "d1", "JobID": "web"}]`, "GET /v1/node/n1/allocations": `[]`,
		"GET /v1/job/web/summary": `{}`, "GET /v1/job/web/evaluations": `[]`, "GET /v1/job/web/deployment": `null`,
		"GET /v1/job/web/allocations": `[]`,
	})
	api.Check(
		clitest.Case{Args: "status", Out: []string{"web"}, Asks: []string{"GET /v1/jobs"}},
		clitest.Case{
			Args: "status we", Out: []string{"Name = the web\n"},
			Asks: []string{`PUT /v1/search?namespace=%2A {"Context":"all","Prefix":"we"}`},
		},
		clitest.Case{Args: "status -json web", Out: []string{`"Summary": {`}},
		clitest.Case{Args: "status a b", Code: 2, Err: []string{"2 arguments given"}},
	)
	for matches, want := range map[string]clitest.Case{
		`{"allocs": ["a1"]}`:         {Args: "status a", Out: []string{"Name = web.g[0]\n"}},
		`{"nodes": ["n1"]}`:          {Args: "status n", Out: []string{"Name = box\n"}},
		`{"evals": ["e1"]}`:          {Args: "status e", Out: []string{"Job = web\n"}},
		`{"deployment": ["d1"]}`:     {Args: "status d", Out: []string{"Job = web\n"}},
		`{"jobs": ["web", "web-2"]}`: {Args: "status web", Out: []string{"Name = the web\n"}}, // an exact match wins
		`{"jobs": ["web-2"], "nodes": ["web"]}`: {
			Args: "status we", Code: 2,
			Err: []string{"2 things begin with \"we\":\n  job  web-2\n  node  web"},
		},
		`{"plugins": ["web"]}`: {Args: "status we", Code: 3, Err: []string{`nothing begins with "we"`}},
		`{}`:                   {Args: "status we", Code: 3, Err: []string{`nothing begins with "we"`}},
	} {
		api.Set("PUT /v1/search", `{"Matches": `+matches+`}`)
		api.Check(want)
	}
	api.Set("PUT /v1/search", "! 500 broken")
	api.Check(clitest.Case{Args: "status we", Code: 1, Err: []string{"broken"}})
	api.Set("GET /v1/jobs", "[]")
	api.Check(clitest.Case{Args: "status", Out: []string{"There are no jobs."}})
}

func TestTheProgramItself(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	api.Check(
		clitest.Case{Args: "version", Out: []string{"Drover ", "(Nomad API "}},
		clitest.Case{Args: "job status -namespaec x", Code: 2, Err: []string{
			"unknown flag: --namespaec; perhaps: -namespace; 'drover job status -help' lists the flags",
		}},
		clitest.Case{Args: "jbo", Code: 2, Err: []string{`drover has no command "jbo"; perhaps: job;`}},
		clitest.Case{Args: "run web.nomad.hcl", Code: 2, Err: []string{
			`"web.nomad.hcl" is no environment with a command: a job file is run with 'drover job run web.nomad.hcl'`,
		}},
		clitest.Case{Args: "run python3.13", Code: 2, Err: []string{"1 argument given; it is: drover run ENV"}},
		clitest.Case{Args: "validate -nope", Code: 2, Err: []string{"'drover validate -help' lists the flags"}},
		clitest.Case{Args: "version now", Code: 1, Err: []string{"unknown command"}},
		clitest.Case{Args: "", Out: []string{"Exit codes: 0 done"}},
		clitest.Case{Args: "-help", Out: []string{"Exit codes: 0 done"}},
		clitest.Case{Args: "jbo", Code: 2, Err: []string{`drover has no command "jbo"; perhaps: job`}},
		clitest.Case{Args: "job status -help", Out: []string{"-namespace"[1:], "Examples:"}},
		clitest.Case{Args: "-nope", Code: 2, Err: []string{"unknown flag: --nope"}},
	)
}

// TestPagesAreOpenedInABrowser also says the address, for machines without one.
func TestPagesAreOpenedInABrowser(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"PUT /v1/search":    `{"Matches": {"jobs": ["a/b"], "evals": ["a1"]}}`,
		"GET /v1/jobs":      `[{"ID": "a/b", "Namespace": "dev"}]`,
		"GET /v1/job/a%2Fb": `{"ID": "a/b", "Namespace": "dev"}`, "GET /v1/job/a/b": `{"ID": "a/b", "Namespace": "dev"}`,
	})
	var opened []string
	api.Parts.Browse = func(_ context.Context, address string) error {
		opened = append(opened, address)
		return nil
	}
	at := api.Address() + "/ui/"
	api.Check(
		clitest.Case{Args: "ui", Out: []string{at + "\n"}},
		clitest.Case{Args: "ui a", Out: []string{at + "jobs/a%2Fb?namespace=dev\n"}},
		clitest.Case{Args: "ui -show-url -namespace dev", Out: []string{at + "?namespace=dev\n"}},
	)
	require.Equal(t, []string{at, at + "jobs/a%2Fb?namespace=dev"}, opened)
	for matches, want := range map[string]clitest.Case{
		`{"allocs": ["a1"]}`: {Args: "ui -show-url a", Out: []string{at + "allocations/a1\n"}},
		`{"nodes": ["n1"]}`:  {Args: "ui -show-url n", Out: []string{at + "clients/n1\n"}},
		`{"evals": ["e1"]}`:  {Args: "ui e", Code: 3, Err: []string{`nothing begins with "e"`}},
	} {
		api.Set("PUT /v1/search", `{"Matches": `+matches+`}`)
		api.Check(want)
	}
	api.Parts.Browse = func(context.Context, string) error { return errors.New("no display") }
	api.Check(clitest.Case{Args: "ui", Code: 1, Out: []string{at}, Err: []string{"no browser could be opened (no display)"}})
}
