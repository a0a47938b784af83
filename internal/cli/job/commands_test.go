package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// world is what an agent with two jobs answers: web, a service with a deployment, and nightly, which is periodic.
func world() map[string]string {
	return map[string]string{
		"GET /v1/jobs": `[
			{"ID": "web", "Namespace": "default", "Type": "service", "Priority": 50, "Status": "running"},
			{"ID": "web-2", "Namespace": "dev", "Type": "batch", "Priority": 20, "Status": "dead", "Stop": true},
			{"ID": "nightly", "Namespace": "default", "Type": "batch", "Priority": 10, "Status": "running", "Periodic": true},
			{"ID": "nightly/periodic-1", "Namespace": "default", "Type": "batch", "Status": "dead", "ParentID": "nightly"}
		]`,
		"GET /v1/job/web": `{"ID": "web", "Name": "the web", "Namespace": "default", "Type": "service", "Priority": 50,
			"Status": "running", "Version": 2, "Datacenters": ["dc1", "dc2"], "NodePool": "default", "SubmitTime": 1000000000,
			"TaskGroups": [{"Name": "g", "Count": 2}, {"Name": "h", "Count": 1}]}`,
		"GET /v1/job/web/summary": `{"Summary": {"g": {"Running": 2}, "h": {"Queued": 1, "Failed": 3, "Lost": 4, "Unknown": 5}}}`,
		"GET /v1/job/web/evaluations": `[
			{"ID": "e1", "Status": "complete", "CreateIndex": 1, "FailedTGAllocs": {"h": {"NodesEvaluated": 1, "NodesExhausted": 1}}},
			{"ID": "e2", "Status": "pending", "CreateIndex": 2}
		]`,
		"GET /v1/job/web/deployment": `{"ID": "d1", "JobID": "web", "Status": "running", "JobVersion": 2,
			"TaskGroups": {"g": {"DesiredTotal": 2, "DesiredCanaries": 1, "PlacedAllocs": 1}}}`,
		"GET /v1/job/web/allocations": `[
			{"ID": "a1", "Name": "web.g[10]", "ClientStatus": "running", "DesiredStatus": "run", "JobVersion": 2, "CreateIndex": 5},
			{"ID": "a2", "Name": "web.g[2]", "ClientStatus": "failed", "DesiredStatus": "stop", "JobVersion": 1, "CreateIndex": 5}
		]`,
		"GET /v1/job/web/versions": `{"Versions": [{"ID": "web", "Version": 2, "Stable": true}, {"ID": "web", "Version": 1}],
			"Diffs": [{"Type": "Edited", "ID": "web", "Fields": [{"Type": "Edited", "Name": "Priority", "Old": "40", "New": "50"}]}]}`,
		"GET /v1/job/web/submission": `{"Source": "job \"web\" {}\n", "Format": "hcl2"}`,
		"DELETE /v1/job/web":         `{"EvalID": "e9"}`,
		"GET /v1/job/nightly": `{"ID": "nightly", "Namespace": "default", "Type": "batch", "Status": "running",
			"Periodic": {"Spec": "0 * * * *"}, "TaskGroups": [{"Name": "g"}]}`,
		"GET /v1/job/nightly/summary":     `{"Summary": {}}`,
		"GET /v1/job/nightly/evaluations": `[]`,
		"GET /v1/job/nightly/deployment":  `null`,
		"GET /v1/job/nightly/allocations": `[]`,
	}
}

func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "job status", Out: []string{"ID ", "web ", "dead (stopped)", "batch/periodic"}, Not: []string{"Namespace"},
			Asks: []string{"GET /v1/jobs"},
		},
		clitest.Case{Args: "job status -namespace *", Out: []string{"Namespace", "dev"}, Asks: []string{"GET /v1/jobs?meta=true&namespace=%2A"}},
		clitest.Case{Args: "job status -json", Out: []string{`"ID": "web-2"`}},
		clitest.Case{Args: "job status -t {{(index.0).ID}}", Code: 2, Err: []string{"the template:"}},
		clitest.Case{Args: "job status -t {{range.}}{{.ID}},{{end}}", Out: []string{"web,web-2,nightly,nightly/periodic-1,\n"}},
		clitest.Case{Args: "job status -json -t x", Code: 2, Err: []string{"-json and -t cannot be given together"}},
		clitest.Case{Args: "job status a b", Code: 2, Err: []string{"2 arguments given; it is: drover job status [JOB]"}},
		clitest.Case{Args: "job status -nope", Code: 2, Err: []string{"unknown flag: --nope; 'drover job status -help' lists the flags"}},
		clitest.Case{Args: "job nope", Code: 2, Err: []string{`drover job has no command "nope"`}},
	)
	api.Set("GET /v1/jobs", "[]")
	api.Check(clitest.Case{Args: "job status", Out: []string{"There are no jobs."}, Not: []string{"left out"}})
	api.Set("GET /v1/jobs", `[{"ID": "environment-python", "Meta": {"drover.environment": "{}"}}]`)
	api.Check(
		clitest.Case{
			Args: "job status", Out: []string{"There are no jobs."}, Not: []string{"environment-python"},
			Err: []string{"The jobs of 1 environment are left out: 'drover env list' shows them.\n"},
		},
		clitest.Case{Args: "job status -t {{range.}}{{.ID}}{{end}}", Out: []string{"environment-python\n"}, Not: []string{"left out"}},
	)
	api.Set("GET /v1/jobs", "! 500 the log is full")
	api.Check(clitest.Case{Args: "job status", Code: 1, Err: []string{"Error: the log is full\n"}})
	api.Set("GET /v1/jobs", "[{")
	api.Check(clitest.Case{Args: "job status", Code: 1, Err: []string{"reading the agent's answer"}})
}

func TestAJobIsShown(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "job status web", Out: []string{
				"ID          = web\n", "Datacenters = dc1, dc2\n", "Version     = 2\n", "Summary\n", "h      1       0", "Latest deployment\n",
				"a1  web.g[10]", "a2  web.g[2]",
			},
			Not: []string{"Parent"},
		},
		clitest.Case{
			Args: "job status nightly", Out: []string{"batch/periodic", "Launches", "nightly/periodic-1  dead"},
			Not: []string{"Allocations"},
		},
		clitest.Case{Args: "job status -short web", Out: []string{"Version     = 2\n"}, Not: []string{"Summary", "Allocations"}},
		clitest.Case{
			Args: "job status -evals -all-allocs web", Out: []string{"Evaluations\n", "e2  0         -             pending", "Not placed"},
			Asks: []string{"all=true&namespace=default"},
		},
		clitest.Case{Args: "job status -t {{.Job.Name}} web", Out: []string{"the web\n"}},
		clitest.Case{Args: "job status -json web", Out: []string{`"Deployment": {`, `"Allocations": [`}},
		clitest.Case{Args: "job allocs -all web", Out: []string{"a1"}, Asks: []string{"/allocations?all=true&namespace=default"}},
		clitest.Case{Args: "job allocs -t {{.|len}} web", Out: []string{"2\n"}},
	)
	api.Set("GET /v1/job/web/deployment", "! 500 no deployment table")
	api.Check(clitest.Case{Args: "job status web", Code: 1, Err: []string{"reading the job's deployment: no deployment table"}})
}

// TestAJobIsFoundByTheBeginningOfItsID runs what finds a job with ids that are none, or several's.
func TestAJobIsFoundByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	for _, command := range []string{
		"status", "inspect", "history", "allocs", "stop", "eval", "periodic force", "dispatch", "revert %s 1", "scale %s 1",
	} {
		args := func(id string) string {
			if strings.Contains(command, "%s") {
				return "job " + strings.ReplaceAll(command, "%s", id)
			}
			return "job " + command + " " + id
		}
		api.Check(
			clitest.Case{Args: args("x"), Code: 3, Err: []string{`there is no job "x" in namespace "default"; -namespace chooses another`}},
			clitest.Case{Args: args("x") + " -namespace dev", Code: 3, Err: []string{`there is no job "x"`}, Not: []string{"chooses"}},
			clitest.Case{Args: args("we"), Code: 2, Err: []string{`2 jobs begin with "we":`, "web  default  running", "web-2  dev  dead"}},
		)
	}
	api.Set("GET /v1/job/web", "! 404 job not found")
	api.Check(clitest.Case{Args: "job status web", Code: 3, Err: []string{"job not found"}})
	api.Set("GET /v1/jobs", "! 503 there is no leader")
	api.Check(
		clitest.Case{Args: "job status web", Code: 1, Err: []string{"there is no leader"}},
		clitest.Case{Args: "job stop web", Code: 1, Err: []string{"there is no leader"}},
	)
}

func TestAJobsTextAndVersions(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{Args: "job inspect web", Out: []string{`"Job": {`, `"Name": "the web"`}},
		clitest.Case{Args: "job inspect -hcl web", Out: []string{`job "web" {}`}, Asks: []string{"/submission?namespace=default&version=2"}},
		clitest.Case{Args: "job inspect -version 1 web", Out: []string{`"Version": 1`}},
		clitest.Case{
			Args: "job inspect -version 7 web", Code: 3,
			Err: []string{`job "web" has no version 7; 'drover job history web' lists them`},
		},
		clitest.Case{Args: "job inspect -t {{.Job.ID}} web", Out: []string{"web\n"}},
		clitest.Case{Args: "job history web", Out: []string{"Version = 2\n", "Stable  = yes\n", "Version = 1\n"}, Not: []string{"Priority"}},
		clitest.Case{Args: "job history -p web", Out: []string{`+/- Priority: "40" => "50"`}},
		clitest.Case{Args: "job history -json web", Out: []string{`"Version": 2`}},
	)
	api.Set("GET /v1/job/web/submission", "! 404 the text was not kept")
	api.Check(clitest.Case{Args: "job inspect -hcl web", Code: 3, Err: []string{"the text was not kept"}})
	api.Set("GET /v1/job/web/versions", "! 500 broken")
	api.Check(
		clitest.Case{Args: "job history web", Code: 1, Err: []string{"broken"}},
		clitest.Case{Args: "job inspect -version 1 web", Code: 1, Err: []string{"broken"}},
	)
}

func TestAJobIsChanged(t *testing.T) {
	t.Parallel()
	answers := world()
	for _, action := range []string{"revert", "scale", "evaluate"} {
		answers["PUT /v1/job/web/"+action] = `{"EvalID": "e9"}`
	}
	answers["PUT /v1/job/nightly/periodic/force"] = `{"EvalID": "e8"}`
	answers["PUT /v1/job/nightly/dispatch"] = `{"EvalID": "", "DispatchedJobID": "nightly/dispatch-1"}`
	api := clitest.Serve(t, answers)
	api.Stdin = "the payload"
	api.Check(
		clitest.Case{
			Args: "job stop -detach -purge -no-shutdown-delay -eval-priority 70 web", Out: []string{"Evaluation ID: e9\n"},
			Asks: []string{"DELETE /v1/job/web?eval_priority=70&namespace=default&no_shutdown_delay=true&purge=true"},
		},
		clitest.Case{Args: "job stop -yes -detach web", Out: []string{"Evaluation ID: e9\n"}, Asks: []string{"purge=false"}},
		clitest.Case{
			Args: "job revert -detach web 1", Out: []string{"e9"},
			Asks: []string{`/revert?namespace=default {"JobID":"web","JobVersion":1}`},
		},
		clitest.Case{Args: "job revert web one", Code: 3, Err: []string{
			`job "web" has no version "one": it is a number or a tag; 'drover job history web' lists them`,
		}},
		clitest.Case{Args: "job scale -detach web g 5", Asks: []string{`"Count":5`}, Out: []string{"e9"}},
		clitest.Case{Args: "job scale -detach web 5", Code: 2, Err: []string{`job "web" has 2 groups: name one`}},
		clitest.Case{Args: "job scale web g -- -1", Code: 2, Err: []string{`count "-1": want a number, 0 or more`}},
		clitest.Case{Args: "job scale web g many", Code: 2, Err: []string{`count "many"`}},
		clitest.Case{Args: "job eval -force-reschedule -detach web", Asks: []string{`"ForceReschedule":true`}, Out: []string{"e9"}},
		clitest.Case{Args: "job periodic force -detach nightly", Out: []string{"e8"}},
		clitest.Case{Args: "job periodic force web", Code: 2, Err: []string{`job "web" is not periodic`}},
		clitest.Case{
			Args: "job dispatch -meta a=b -idempotency-token once -priority 7 nightly -", Out: []string{"Dispatched job ID: nightly/dispatch-1\n"},
			Asks: []string{
				`/dispatch?idempotency_token=once&namespace=default {"IdPrefixTemplate":"","Meta":{"a":"b"},` +
					`"Payload":"dGhlIHBheWxvYWQ=","Priority":7}`,
			},
		},
		clitest.Case{Args: "job dispatch -meta a nightly", Code: 2, Err: []string{`-meta "a": want key=value`}},
		clitest.Case{Args: "job dispatch nightly /no/such/file", Code: 2, Err: []string{"reading /no/such/file: no such file or directory"}},
	)
	api.Set("PUT /v1/job/web/scale", "! 400 scaling is not possible during a deployment")
	api.Set("PUT /v1/job/nightly/dispatch", "! 400 job is not parameterized")
	api.Check(
		clitest.Case{Args: "job scale web g 5", Code: 2, Err: []string{"scaling is not possible during a deployment"}},
		clitest.Case{Args: "job dispatch nightly", Code: 2, Err: []string{"job is not parameterized"}, Not: []string{"Dispatched"}},
	)
}

const webFile = `variable "n" {
  type    = number
  default = 1
}
job "web" {
  group "g" {
    count = var.n
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
    }
  }
}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAJobFileIsRun(t *testing.T) {
	t.Parallel()
	file, vars := write(t, "web.hcl", webFile), write(t, "vars.hcl", "n = 4\n")
	api := clitest.Serve(t, map[string]string{"PUT /v1/jobs": `{"EvalID": "e1", "Warnings": "no services here"}`})
	api.Check(
		clitest.Case{
			Args: "job run -detach -var n=3 " + file, Out: []string{"Evaluation ID: e1\n"}, Err: []string{"Warning: no services here\n"},
			Asks: []string{`"Count":3`},
		},
		clitest.Case{Args: "job run -detach -var-file " + vars + " " + file, Out: []string{"e1"}, Asks: []string{`"Count":4`}},
		clitest.Case{
			Args: "job run -detach -check-index 7 -eval-priority 60 -preserve-counts -namespace dev " + file, Out: []string{"e1"},
			Asks: []string{`"Namespace":"dev"`},
		},
		clitest.Case{Args: "job run -detach -preserve-resources " + file, Asks: []string{`"PreserveResources":true`}},
		clitest.Case{Args: "job run -output -var nope=1 " + file, Code: 2, Err: []string{`declares no variable "nope"`}},
		clitest.Case{Args: "job run -output -hcl2-strict=false -var nope=1 " + file, Out: []string{`"ID": "web"`}},
		clitest.Case{Args: "job run -output " + file, Out: []string{`"Job": {`, `"ID": "web"`}},
		clitest.Case{Args: "job run -var n " + file, Code: 2, Err: []string{`-var "n": want name=value`}},
		clitest.Case{Args: "job run -var m=1 " + file, Code: 2, Err: []string{"m"}},
		clitest.Case{Args: "job run -var-file /no/such " + file, Code: 2, Err: []string{"-var-file: open /no/such"}},
		clitest.Case{Args: "job run /no/such", Code: 2, Err: []string{"reading /no/such: no such file or directory"}},
		clitest.Case{Args: "job run", Code: 2, Err: []string{"0 arguments given; it is: drover job run FILE|-"}},
	)
	require.Empty(t, api.Asked(), "wrong usage asks nothing")
	api.Run("job", "run", "-detach", "-check-index", "0", file)
	asked := strings.Join(api.Asked(), "\n")
	require.Contains(t, asked, `"EnforceIndex":true,"JobModifyIndex":0`, "0: it must be new")
	api.Run("job", "run", "-detach", file)
	require.Contains(t, strings.Join(api.Asked(), "\n"), `"EnforceIndex":false`)
	for _, stdin := range []string{`{"Job": {"ID": "j", "Name": "j"}}`, ` {"ID": "j"}`} {
		api.Stdin = stdin
		api.Check(clitest.Case{Args: "job run -detach -", Out: []string{"e1"}, Asks: []string{`"ID":"j"`}})
	}
	for stdin, want := range map[string]string{
		`{"Job": {}}`: "the job's JSON has no ID", `{"Job": 3}`: "the job's JSON:", `{`: "the job's JSON:", "job {": "stdin:1",
	} {
		api.Stdin = stdin
		api.Check(clitest.Case{Args: "job run -", Code: 2, Err: []string{want}})
	}
	api.Set("PUT /v1/jobs", "! 409 the job was changed meanwhile")
	api.Check(clitest.Case{Args: "job run " + file, Code: 1, Err: []string{"the job was changed meanwhile"}})
}

// TestJobsThatOnlyMakeOthersSaySo registers jobs of which nothing is placed.
func TestJobsThatOnlyMakeOthersSaySo(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{"PUT /v1/jobs": `{}`})
	api.Stdin = `{"ID": "p", "Periodic": {"Spec": "@daily"}}`
	api.Check(clitest.Case{Args: "job run -", Out: []string{`Registered job "p". It is periodic: 'drover job status p' shows its launches.`}})
	api.Stdin = `{"ID": "d", "ParameterizedJob": {}}`
	api.Check(clitest.Case{Args: "job run -", Out: []string{`It is a template: 'drover job dispatch d' starts one.`}})
}

func TestAPlan(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", webFile)
	api := clitest.Serve(t, map[string]string{"PUT /v1/job/web/plan": `{"JobModifyIndex": 12, "Warnings": "old block",
		"Diff": {"Type": "Added", "ID": "web", "Fields": [{"Type": "Added", "Name": "Priority", "New": "50"}, {"Type": "None",
			"Name": "Region"}]},
		"Annotations": {"DesiredTGUpdates": {"g": {"Place": 1}}, "PreemptedAllocs": [{"ID": "p1", "Name": "low.g[0]"}]},
		"NextPeriodicLaunch": "2026-01-01T00:00:00Z"}`})
	api.Check(
		clitest.Case{
			Args: "job plan " + file, Asks: []string{`PUT /v1/job/web/plan {"Diff":true,"Job":{`},
			Out: []string{
				`+ Job: "web"`, `+ Priority: "50"`, "- All tasks successfully allocated.", "- The next launch would be at 20",
				"    p1  low.g[0]\n", "Warnings: old block\n", "Job modify index: 12\n", "drover job run -check-index 12 " + file,
			},
			Not: []string{"Region"},
		},
		clitest.Case{Args: "job plan -verbose " + file, Out: []string{"Region"}},
		clitest.Case{Args: "job plan -diff=false " + file, Asks: []string{`"Diff":false`}},
		clitest.Case{Args: "job plan -detailed-exitcode " + file, Code: 1},
	)
	api.Set("PUT /v1/job/web/plan", `{"Annotations": {"DesiredTGUpdates": {"g": {"Ignore": 1}}}}`)
	api.Check(clitest.Case{Args: "job plan -detailed-exitcode " + file, Not: []string{"preempted", "Warnings", "next launch"}})
	api.Set("PUT /v1/job/web/plan", `{"FailedTGAllocs": {"g": {"NodesEvaluated": 1, "ConstraintFiltered": {"no docker": 1}}}}`)
	api.Check(clitest.Case{Args: "job plan " + file, Code: 4, Out: []string{"- Not everything can be placed:", "no docker: 1 node left out"}})
	api.Set("PUT /v1/job/web/plan", "! 501 plans are not made here")
	api.Check(clitest.Case{Args: "job plan " + file, Code: 1, Err: []string{"plans are not made here"}})
}

func TestAJobFileIsValidated(t *testing.T) {
	t.Parallel()
	file := write(t, "web.hcl", webFile)
	api := clitest.Serve(t, map[string]string{"PUT /v1/validate/job": `{"Warnings": "old block"}`})
	api.Check(
		clitest.Case{Args: "job validate " + file, Out: []string{`Job "web" is valid.`}, Err: []string{"Warning: old block"}},
		clitest.Case{Args: "job validate -address http://127.0.0.1:1 " + file, Out: []string{"is valid"}, Err: []string{"checked here only"}},
	)
	api.Set("PUT /v1/validate/job", `{"ValidationErrors": ["no count", "no task"], "Error": "two"}`)
	api.Check(clitest.Case{Args: "job validate " + file, Code: 2, Err: []string{" * no count\n * no task\n", "2 faults in " + file}})
	api.Set("PUT /v1/validate/job", `{"Error": "the namespace is missing"}`)
	api.Check(clitest.Case{Args: "job validate " + file, Code: 2, Err: []string{"Error: the namespace is missing"}})
	api.Set("PUT /v1/validate/job", "! 500 broken")
	api.Check(clitest.Case{Args: "job validate " + file, Code: 1, Err: []string{"broken"}})
	bad := write(t, "bad.hcl", `job "bad" { type = "service" }`)
	api.Check(clitest.Case{Args: "job validate -address http://127.0.0.1:1 " + bad, Code: 2, Err: []string{"group"}})
}

func TestInitWritesAFileThatParses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new.hcl")
	api := clitest.Serve(t, nil)
	api.Check(
		clitest.Case{Args: "job init -short " + path, Out: []string{"Wrote " + path + ". Start it with: drover job run " + path}},
		clitest.Case{Args: "job init " + path, Code: 1, Err: []string{path + " is there already: name another file"}},
		clitest.Case{Args: "job init /no/such/folder/x", Code: 1, Err: []string{"no such file or directory"}},
		clitest.Case{Args: "job run -output " + path, Out: []string{`"ID": "example"`}},
	)
}

// TestARestartIsWaitedFor: the next batch begins when the tasks of the one before run again.
func TestARestartIsWaitedFor(t *testing.T) {
	t.Parallel()
	alloc := func(status, state, started string) string {
		return `{"ID": "a", "Name": "web.g[0]", "TaskGroup": "g", "DesiredStatus": "run", "ClientStatus": "` + status + `", "TaskStates": {
			"t": {"State": "` + state + `", "StartedAt": "` + started + `"}, "init": {"State": "dead"}}}`
	}
	const before, after = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
	answers := world()
	answers["GET /v1/job/web/deployment"] = "null"
	answers["GET /v1/job/web/allocations"] = "[" + alloc("running", "running", before) + "]"
	answers["PUT /v1/client/allocation/a/restart"] = "{}"
	api := clitest.Serve(t, answers)
	api.Set("GET /v1/allocation/a", strings.Join([]string{
		alloc("running", "running", before), alloc("pending", "pending", before), alloc("running", "running", after),
	}, "\n---\n"))
	api.Check(clitest.Case{
		Args: "job restart web", Out: []string{"==> Restarted 1 allocation of job"},
		Asks: []string{"/v1/allocation/a?index=0", "/v1/allocation/a?index=7", "/v1/allocation/a?index=7"},
	})
	api.Set("GET /v1/allocation/a", alloc("running", "running", before)+"\n---\n"+alloc("failed", "dead", before))
	api.Check(clitest.Case{
		Args: "job restart web", Code: 1,
		Err: []string{"allocation a: it is failed", "it stops at the first allocation that cannot be restarted; 0 of 1 allocations"},
	})
}
