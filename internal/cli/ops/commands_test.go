package ops_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

func TestEvaluations(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/evaluations": `[
			{"ID": "e1", "JobID": "web", "Namespace": "default", "Status": "complete", "TriggeredBy": "job-register", "Priority": 50,
				"CreateIndex": 1},
			{"ID": "f2", "JobID": "api", "Namespace": "default", "Status": "blocked", "Priority": 70, "CreateIndex": 2, "Type": "service",
				"StatusDescription": "created to place remaining", "PreviousEval": "e1", "FailedTGAllocs": {"g": {"NodesEvaluated": 1}},
				"PlanAnnotations": {"DesiredTGUpdates": {"g": {"Place": 2, "Stop": 1}}}}]`,
		"GET /v1/evaluation/f2/allocations": `[{"ID": "a1", "Name": "api.g[0]", "ClientStatus": "running"}]`,
		"GET /v1/evaluation/e1/allocations": `[]`,
		"GET /v1/evaluation/e1":             `{"ID": "e1", "JobID": "web", "Namespace": "default", "Status": "complete", "Type": "service"}`,
		"GET /v1/job/web/allocations":       `[]`,
	})
	api.Check(
		clitest.Case{Args: "eval list", Out: []string{"f2 70 - api blocked yes -\ne1 50 job-register web complete no -\n"}}, // the newest first
		clitest.Case{Args: "eval list -job web -status complete", Asks: []string{"/v1/evaluations?job=web&status=complete"}},
		clitest.Case{Args: "eval list -json", Out: []string{`"ID": "f2"`}},
		clitest.Case{Args: "eval list -t {{len.}}", Code: 2},
		clitest.Case{
			Args: "eval status f", Out: []string{
				"ID = f2\n", "Description = created to place remaining\n", "Follows = e1\n", "Group \"g\": place 2, stop 1\n",
				"Not placed\nGroup \"g\": 1 allocation not placed\n", "a1 api.g[0]",
			},
		},
		clitest.Case{Args: "eval status e1", Out: []string{"Status = complete\n", "Allocations\nThere are none.\n"}, Not: []string{"Not placed"}},
		clitest.Case{Args: "eval status -json e1", Out: []string{`"JobID": "web"`}},
		clitest.Case{Args: "eval status -t {{.JobID}} e1", Out: []string{"web\n"}},
		clitest.Case{Args: "eval status -monitor e1", Out: []string{"==> Evaluation e1 is complete\n"}},
		clitest.Case{Args: "eval status nope", Code: 3, Err: []string{`there is no evaluation "nope"`}},
		clitest.Case{Args: "eval status", Code: 2, Err: []string{"0 arguments given; it is: drover eval status EVAL"}},
	)
	api.Set("GET /v1/evaluation/e1/allocations", "! 500 broken")
	api.Check(clitest.Case{Args: "eval status e1", Code: 1, Err: []string{"broken"}})
	api.Set("GET /v1/evaluations", "[]")
	api.Check(clitest.Case{Args: "eval list", Out: []string{"There are none."}})
	api.Set("GET /v1/evaluations", "! 500 broken")
	api.Check(clitest.Case{Args: "eval list", Code: 1}, clitest.Case{Args: "eval status e1", Code: 1, Err: []string{"broken"}})
}

func deployments() map[string]string {
	const d1 = `{"ID": "d1", "JobID": "web", "Namespace": "dev", "JobVersion": 2, "Status": "running",
		"StatusDescription": "Deployment is running",
		"CreateIndex": 3, "TaskGroups": {"g": {"DesiredTotal": 3, "DesiredCanaries": 1, "Promoted": true, "PlacedAllocs": 2, "HealthyAllocs": 1,
		"UnhealthyAllocs": 1}, "h": {"DesiredTotal": 1}}}`
	return map[string]string{
		"GET /v1/deployments":   `[` + d1 + `, {"ID": "d2", "JobID": "api", "Namespace": "default", "Status": "successful", "CreateIndex": 4}]`,
		"GET /v1/deployment/d1": strings.Replace(d1, `"running"`, `"failed"`, 1),
	}
}

func TestDeployments(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, deployments())
	api.Check(
		clitest.Case{Args: "deployment list", Out: []string{"d2 api 0 successful -\nd1 web 2 running Deployment is running\n"}},
		clitest.Case{Args: "deployment list -json", Out: []string{`"ID": "d2"`}},
		// h has no canaries to promote
		clitest.Case{Args: "deployment status d1", Out: []string{"ID = d1\n", "g yes 3 1 2 1 1 -\n", "h - 1 0 0 0 0 -\n"}},
		clitest.Case{Args: "deployment status -json d1", Out: []string{`"JobVersion": 2`}},
		clitest.Case{Args: "deployment status -t {{.Status}} d1", Out: []string{"running\n"}},
		clitest.Case{
			Args: "deployment status -monitor d1", Code: 1, Asks: []string{"/v1/deployment/d1?index=0&namespace=dev&wait=60s"},
			Out: []string{" g: 2 of 3 placed, 1 healthy, 1 unhealthy, promoted\n h: 0 of 1 placed", "==> Deployment d1 is failed"},
		},
		clitest.Case{Args: "deployment status d", Code: 2, Err: []string{`2 deployments begin with "d":`, "d1 web running"}},
		clitest.Case{Args: "deployment status x", Code: 3, Err: []string{`there is no deployment "x"`}},
	)
	api.Set("GET /v1/deployments", "[]")
	api.Check(clitest.Case{Args: "deployment list", Out: []string{"There are none."}})
	api.Set("GET /v1/deployments", "! 500 broken")
	api.Check(clitest.Case{Args: "deployment list", Code: 1}, clitest.Case{Args: "deployment promote d1", Code: 1, Err: []string{"broken"}})
}

func TestDeploymentsAreSteered(t *testing.T) {
	t.Parallel()
	answers := deployments()
	answers["PUT /v1/deployment/promote/d1"] = `{"EvalID": "e1"}`
	answers["PUT /v1/deployment/fail/d1"] = `{"EvalID": "e2", "RevertedJobVersion": 0}`
	answers["PUT /v1/deployment/pause/d1"] = `{}`
	api := clitest.Serve(t, answers)
	api.Check(
		clitest.Case{
			Args: "deployment promote -detach d1", Out: []string{"Evaluation ID: e1\n"},
			Asks: []string{`/promote/d1?namespace=dev {"All":true,"DeploymentID":"d1","Groups":null}`},
		},
		clitest.Case{
			Args: "deployment promote -detach -group g -group h d1",
			Asks: []string{`{"All":false,"DeploymentID":"d1","Groups":["g","h"]}`},
		},
		clitest.Case{Args: "deployment fail -detach d1", Out: []string{"The job goes back to version 0.\nEvaluation ID: e2\n"}},
		clitest.Case{Args: "deployment pause d1", Asks: []string{`"Pause":true`}, Not: []string{"Evaluation"}},
		clitest.Case{Args: "deployment resume d1", Asks: []string{`"Pause":false`}},
		clitest.Case{Args: "deployment promote", Code: 2},
		clitest.Case{Args: "deployment fail x", Code: 3},
	)
	api.Set("PUT /v1/deployment/promote/d1", "! 400 no canaries to promote")
	api.Check(clitest.Case{Args: "deployment promote d1", Code: 2, Err: []string{"no canaries to promote"}})
}

func TestTheSchedulersConfiguration(t *testing.T) {
	t.Parallel()
	const path = "/v1/operator/scheduler/configuration"
	api := clitest.Serve(t, map[string]string{
		"GET " + path: `{"SchedulerConfig": {"SchedulerAlgorithm": "binpack", "ModifyIndex": 5, "MemoryOversubscriptionEnabled": true,
			"PreemptionConfig": {"SystemSchedulerEnabled": true}}}`,
		"PUT " + path: `{"Updated": true}`,
	})
	api.Check(
		clitest.Case{
			Args: "operator scheduler get-config",
			Out:  []string{"Algorithm = binpack\n", "Memory oversubscription = yes\n", "Preempts for system jobs = yes\n", "… batch jobs = no\n"},
		},
		clitest.Case{Args: "operator scheduler get-config -json", Out: []string{`"ModifyIndex": 5`}},
		clitest.Case{Args: "operator scheduler get-config -t {{.SchedulerAlgorithm}}", Out: []string{"binpack\n"}},
	)
	for args, want := range map[string]string{
		"-scheduler-algorithm spread": `"SchedulerAlgorithm":"spread"`, "-memory-oversubscription=false": `"MemoryOversubscriptionEnabled":false`,
		"-reject-job-registration": `"RejectJobRegistration":true`, "-pause-eval-broker": `"PauseEvalBroker":true`,
		"-preempt-system-scheduler=false": `"SystemSchedulerEnabled":false`, "-preempt-sysbatch-scheduler": `"SysBatchSchedulerEnabled":true`,
		"-preempt-batch-scheduler": `"BatchSchedulerEnabled":true`, "-preempt-service-scheduler": `"ServiceSchedulerEnabled":true`,
	} {
		api.Check(clitest.Case{
			Args: "operator scheduler set-config " + args, Out: []string{"The scheduler's configuration is changed.\n"},
			Asks: []string{"GET " + path, want},
		})
	}
	api.Check(clitest.Case{ // what is not named stays
		Args: "operator scheduler set-config -pause-eval-broker", Asks: []string{
			"GET",
			`cas=5 {"SchedulerAlgorithm":"binpack","PreemptionConfig":{"SystemSchedulerEnabled":true,`,
		},
		Out: []string{"changed"},
	})
	api.Set("PUT "+path, `{"Updated": false}`)
	api.Check(clitest.Case{
		Args: "operator scheduler set-config -pause-eval-broker", Code: 1,
		Err: []string{"somebody else changed the configuration"},
	})
	api.Set("PUT "+path, "! 400 no such algorithm")
	api.Check(clitest.Case{Args: "operator scheduler set-config -scheduler-algorithm best", Code: 2, Err: []string{"no such algorithm"}})
	api.Set("GET "+path, "! 500 broken")
	api.Check(
		clitest.Case{Args: "operator scheduler set-config", Code: 1, Err: []string{"broken"}},
		clitest.Case{Args: "operator scheduler get-config", Code: 1, Err: []string{"broken"}},
	)
}

func TestServers(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/operator/raft/configuration": `{"Servers": [
			{"ID": "s1", "Node": "n1", "Address": "10.0.0.1:4647", "Leader": true, "Voter": true, "RaftProtocol": "3"},
			{"ID": "s2", "Node": "n2", "Address": "10.0.0.2:4647"}]}`,
		"GET /v1/agent/members": `{"Members": [
			{"Name": "n1", "Addr": "10.0.0.1", "Port": 4647, "Status": "alive", "Tags": {"build": "1.2", "dc": "dc1", "region": "global"}},
			{"Name": "n2", "Addr": "10.0.0.2", "Port": 4647, "Status": "failed"}]}`,
		"GET /v1/status/leader": `"10.0.0.2:4647"`,
		"GET /v1/agent/self":    `{"config": {}, "stats": {"nomad": {"leader": "true"}, "client": {"node_id": "n\u001b[2J1"}}}`,
		"PUT /v1/system/gc":     `{}`,

		"PUT /v1/agent/join":        `{"num_joined": 2, "error": ""}`,
		"PUT /v1/agent/force-leave": "",
	})
	api.Check(
		clitest.Case{
			Args: "server join a b:1", Out: []string{"Joined 2 servers successfully"}, Asks: []string{"PUT /v1/agent/join?address=a&address=b%3A1"},
		},
		clitest.Case{Args: "server force-leave n2", Asks: []string{"PUT /v1/agent/force-leave?node=n2"}},
		clitest.Case{Args: "server force-leave -prune n2", Asks: []string{"PUT /v1/agent/force-leave?node=n2&prune=1"}},
		clitest.Case{Args: "operator raft list-peers", Out: []string{
			"n1 s1 10.0.0.1:4647 leader yes 3\n",
			"n2 s2 10.0.0.2:4647 follower no -\n",
		}},
		clitest.Case{Args: "operator raft list-peers -json", Out: []string{`"Voter": true`}},
		clitest.Case{Args: "server members", Out: []string{"n1 10.0.0.1:4647 alive no 1.2 dc1 global\n", "n2 10.0.0.2:4647 failed yes - - -\n"}},
		clitest.Case{Args: "server members -t {{range.}}{{.Name}}{{end}}", Out: []string{"n1n2\n"}},
		clitest.Case{Args: "agent-info", Out: []string{"client\n node_id = n [2J1\nnomad\n leader = true\n"}},
		clitest.Case{Args: "agent-info -json", Out: []string{`"stats": {`}},
		clitest.Case{Args: "system gc", Asks: []string{"PUT /v1/system/gc"}},
	)
	api.Set("PUT /v1/agent/join", `{"num_joined": 0, "error": "joining: nobody answers"}`)
	api.Check(clitest.Case{Args: "server join a", Code: 1, Err: []string{"joining: nobody answers"}})
	api.Set("GET /v1/status/leader", "! 500 No cluster leader")
	api.Check(clitest.Case{Args: "server members", Out: []string{"n1 10.0.0.1:4647 alive no"}, Not: []string{"yes"}})
	for _, c := range [][2]string{
		{"GET /v1/operator/raft/configuration", "operator raft list-peers"},
		{"GET /v1/agent/members", "server members"},
		{"GET /v1/agent/self", "agent-info"},
		{"PUT /v1/system/gc", "system gc"},
	} {
		api.Set(c[0], "! 500 broken")
		api.Check(clitest.Case{Args: c[1], Code: 1, Err: []string{"Error: broken"}})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	const event = `{"Index": 4, "Events": [{"Topic": "Job", "Type": "JobRegistered", "Key": "web", "Index": 4}]}`
	api := clitest.Serve(t, map[string]string{
		"PUT /v1/search": `{"Index": 9}`,
		"GET /v1/event/stream": "{}\n" + event + "\n" +
			`{"Index": 5, "Events": [{"Topic": "Node", "Type": "NodeDrain", "Key": "91c30000-0000-0000-0000-000000000000", "Index": 5}]}` + "\n",
	})
	ended := []string{"the stream ended"} // nothing ends it but Ctrl-C
	api.Check(
		clitest.Case{
			Args: "event stream", Code: 1, Out: []string{"4 Job JobRegistered web\n5 Node NodeDrain 91c30000\n"}, Err: ended,
			Asks: []string{"index=10"},
		},
		clitest.Case{Args: "event stream -json", Code: 1, Out: []string{event + "\n"}, Err: ended},
		clitest.Case{
			Args: "event stream -verbose -index 3 -topic Job -topic Node:x", Code: 1, Out: []string{"91c30000-0000"},
			Asks: []string{"index=3&topic=Job&topic=Node%3Ax"},
		},
		clitest.Case{Args: "event stream -index 3 -t {{.Key}}", Code: 1, Out: []string{"web\n91c3"}},
		clitest.Case{Args: "event stream -index 3 -t {{.Nope}}", Code: 2, Err: []string{"the template:"}},
		clitest.Case{Args: "event stream -index few", Code: 2, Err: []string{"invalid argument"}},
	)
	for answer, want := range map[string]clitest.Case{
		`{"Error": "the index is gone"}`: {Code: 1, Err: []string{"Error: the index is gone"}},
		"nonsense":                       {Code: 1, Err: []string{"reading an event"}},
		"! 404 no such topic":            {Code: 3, Err: []string{"no such topic"}},
	} {
		api.Set("GET /v1/event/stream", answer)
		want.Args = "event stream -index 1"
		api.Check(want)
	}
	api.Set("PUT /v1/search", "! 500 broken")
	api.Check(clitest.Case{Args: "event stream", Code: 1, Err: []string{"broken"}})
}

func TestTheAgentsLog(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/agent/monitor": "a line of the log\n",
		"GET /v1/nodes":         `[{"ID": "91c3", "Name": "n1"}]`,
		"GET /v1/node/91c3":     `{"ID": "91c3", "Name": "n1"}`,
	})
	api.Check(
		clitest.Case{
			Args: "monitor", Out: []string{"a line of the log\n"}, Err: []string{"level info and up"},
			Asks: []string{"log_level=info&plain=true"},
		},
		clitest.Case{Args: "monitor -log-level debug -node-id n1", Out: []string{"a line"}, Asks: []string{"log_level=debug&node_id=91c3"}},
		clitest.Case{Args: "monitor -server-id s1", Out: []string{"a line"}, Asks: []string{"server_id=s1"}},
		clitest.Case{Args: "monitor -node-id nope", Code: 3, Err: []string{`there is no node "nope"`}},
	)
	api.Set("GET /v1/agent/monitor", `{"Data": "eyJtIjoxfQo="}{"Data": "Zmlu"}`)
	api.Check(clitest.Case{
		Args: "monitor -json", Code: 1, Out: []string{"{\"m\":1}\nfin"}, Err: []string{"the log ended"},
		Asks: []string{"log_json=true"},
	})
	api.Set("GET /v1/agent/monitor", "! 400 no such level")
	api.Check(clitest.Case{Args: "monitor -log-level x", Code: 2}, clitest.Case{
		Args: "monitor -json", Code: 2,
		Err: []string{"no such level"},
	})
}

// TestStreamsEndWithTheirContext: Ctrl-C is no failure of a stream.
func TestStreamsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	for path, args := range map[string]string{
		"/v1/event/stream": "event stream -index 1", "/v1/agent/monitor": "monitor",
	} {
		for _, flag := range []string{"", " -json"} {
			api := clitest.Serve(t, nil)
			ctx, interrupt := context.WithCancel(t.Context())
			api.Handle("GET "+path, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush() // the client is this process
				interrupt()
				<-r.Context().Done()
			})
			r := api.RunContext(ctx, strings.Fields(args+flag)...)
			require.Contains(t, []int{0, 130}, r.Code, r.Err)
			require.NotContains(t, r.Err, "Error", args+flag)
		}
	}
}

// TestWhatIsPipedIntoAnAPICallIsItsBody: by POST, unless a method is given; one that has no body leaves it.
func TestWhatIsPipedIntoAnAPICallIsItsBody(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"POST /v1/jobs": "posted", "PUT /v1/jobs": "put", "DELETE /v1/jobs": "deleted", "GET /v1/jobs": "got",
	})
	api.Stdin = `{"Job": {}}`
	api.Check(
		clitest.Case{Args: "operator api jobs", Out: []string{"posted"}, Asks: []string{`POST /v1/jobs {"Job": {}}`}},
		clitest.Case{Args: "operator api -X put jobs", Out: []string{"put"}, Asks: []string{`PUT /v1/jobs {"Job": {}}`}},
		clitest.Case{Args: "operator api -X DELETE jobs", Out: []string{"deleted"}},
		clitest.Case{Args: "operator api -dryrun jobs", Out: []string{"curl -X POST --data-binary @- '"}},
	)
	api.Stdin = ""
	api.Check(clitest.Case{Args: "operator api jobs", Out: []string{"got"}})
	api.Check(clitest.Case{
		Args: "operator api -verbose -H X-Nomad-Token:secret jobs", Err: []string{"> X-Nomad-Token: …"}, Not: []string{"secret"},
	})
}
