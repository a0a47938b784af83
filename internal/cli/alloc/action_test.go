package alloc_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// actors is a job with two groups, whose action "twice" two tasks have.
func actors() map[string]string {
	job := `{"ID": "web", "Namespace": "default", "TaskGroups": [
		{"Name": "g", "Tasks": [{"Name": "t", "Actions": [{"Name": "flush", "Command": "x"}, {"Name": "twice", "Command": "x"}]}]},
		{"Name": "h", "Tasks": [{"Name": "u", "Actions": [{"Name": "twice", "Command": "x"}, {"Name": "idle", "Command": "x"}]}]},
		{"Name": "i", "Tasks": [{"Name": "v", "Actions": [{"Name": "resting", "Command": "x"}]}]}]}`
	alloc := func(id, group string) string {
		return `{"ID": "` + id + `", "Namespace": "default", "JobID": "web", "TaskGroup": "` + group + `",
			"ClientStatus": "running", "CreateIndex": 4,
			"Job": ` + job + `}`
	}
	one, two := running, "3f3b0000-0000-0000-0000-000000000000"
	list := "[" + alloc(two, "h") + "," + alloc(one, "g") + "]"
	return map[string]string{
		"GET /v1/jobs": `[{"ID": "web", "Namespace": "default"}]`, "GET /v1/job/web": job,
		"GET /v1/job/web/allocations": list, "GET /v1/allocations": list,
		"GET /v1/allocation/" + one: alloc(one, "g"), "GET /v1/allocation/" + two: alloc(two, "h"),
		"GET /v1/job/web/actions": `[{"Name": "flush", "TaskName": "t", "TaskGroupName": "g"}]`,
	}
}

func TestAction(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, actors())
	h, _ := session(t, websocket.StatusNormalClosure, "", `{"stdout": {"data": "b3V0"}}`, `{"exited": true, "result": {"exit_code": 7}}`)
	var query url.Values
	api.Handle("GET /v1/job/web/action", func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query()
		h(w, r)
	})
	asked := func(alloc, group, task, action string) {
		t.Helper()
		require.Equal(t, url.Values{
			"namespace": {"default"}, "allocID": {alloc}, "group": {group}, "task": {task}, "action": {action}, "tty": {"false"},
		}, query)
	}
	api.Check(clitest.Case{Args: "job action -job web flush", Code: 7, Out: []string{"out"}})
	asked(running, "g", "t", "flush")
	api.Check(clitest.Case{Args: "job action -job web -group h twice", Code: 7, Out: []string{"out"}})
	asked("3f3b0000-0000-0000-0000-000000000000", "h", "u", "twice")
	api.Check(clitest.Case{Args: "job action -allocation 3f2a twice", Code: 7, Out: []string{"out"}})
	asked(running, "g", "t", "twice")
	api.Check(
		clitest.Case{Args: "job action flush", Code: 2, Err: []string{"name a job with -job"}},
		clitest.Case{Args: "job action -job web twice", Code: 2, Err: []string{"choose with -group and -task: g/t, h/u"}},
		clitest.Case{Args: "job action -job web none", Code: 3, Err: []string{`no action "none"`, "flush"}},
		clitest.Case{Args: "job action -job web -task t idle", Code: 3, Err: []string{`no action "idle"`}},
		clitest.Case{Args: "job action -job web resting", Code: 3, Err: []string{`no allocation of group "i" of job "web" runs`}},
		clitest.Case{Args: "job action -allocation 3f2a -group h twice", Code: 3, Err: []string{`is of group "g" of job "web"`}},
		clitest.Case{Args: "job actions web", Out: []string{"Action", "flush", "g", "t"}},
		clitest.Case{Args: "job actions -json web", Out: []string{`"TaskGroupName": "g"`}},
	)
}
