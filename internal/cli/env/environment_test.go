package env_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// refused is an error as Drover's own API has it.
func refused(status, code, message string) string {
	return "! " + status + ` {"code": "` + code + `", "message": "` + message + `"}`
}

const python = `{"id": "py", "image": "python", "driver": "sandbox", "poolSize": 2, "memoryMB": 64, "idleTimeout": 60000000000,
	"exposedPorts": [80, 81], "network": true, "env": {"A": "b"}, "cpu": 100}`

func world() map[string]string {
	return map[string]string{
		"GET /v1/environments":      `[` + python + `, {"id": "go", "image": "golang"}]`,
		"GET /v1/environment/py":    python,
		"PUT /v1/environment/py":    python,
		"DELETE /v1/environment/py": `{}`,
		"GET /v1/environment/py/pool": `{"environment": "py", "size": 2, "warm": 1, "starting": 1, "queued": 1, "claimed": 3,
			"waiting": 1, "lastError": "no\nroom"}`,
		"GET /v1/environment/go/pool":     refused("404", "not_found", "no such environment"),
		"GET /v1/environment/new":         refused("404", "not_found", "no such environment"),
		"GET /v1/environment/broken":      refused("500", "internal", "broken"),
		"DELETE /v1/environment/broken":   refused("500", "internal", "broken"),
		"GET /v1/environment/broken/pool": refused("500", "internal", "broken"),
		"GET /v1/nodes": `[
			{"Name": "n1", "Status": "ready", "Drivers": {"sandbox": {"Attributes": {"driver.sandbox.weaker": "no root"}}}},
			{"Name": "n2", "Status": "down", "Drivers": {"sandbox": {"Attributes": {"driver.sandbox.weaker": "no root"}}}},
			{"Name": "n3", "Status": "ready"}]`,
	}
}

func TestEnvironmentsAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{Args: "env list", Out: []string{"py python sandbox 2 1 3 no room\n"}, Not: []string{"golang"}}, // it was deleted meanwhile
		clitest.Case{Args: "env list -json", Out: []string{`"id": "go"`}},
		clitest.Case{Args: "env list -t {{range.}}{{.ID}}.{{end}}", Out: []string{"py.go.\n"}},
	)
	api.Set("GET /v1/environment/py/pool", refused("500", "internal", "broken"))
	api.Check(clitest.Case{Args: "env list", Code: 1, Err: []string{"Error: broken"}})
	api.Set("GET /v1/environments", "[]")
	api.Check(clitest.Case{Args: "env list", Out: []string{"There are no environments: 'drover env put' makes one."}})
	api.Set("GET /v1/environments", refused("401", "unauthorized", "who are you"))
	api.Check(clitest.Case{Args: "env list", Code: 1, Err: []string{"who are you; give it with -token or DROVER_TOKEN"}})
}

func TestAnEnvironmentIsShown(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "env status py", Out: []string{
				"Name = py\n", "Pool = 1 of 2 warm, 1 starting, 1 queued, 3 claimed, 1 claim waiting; last error: no room\n", "CPU = 100 MHz\n",
				"Memory = 64 MB\n", "Ports = 80 81\n", "Env = A=b\n", "Idle timeout = 1m0s\n", "\nOn node n1 runners are held less than they could " +
					"be: no root\n",
			},
			Not: []string{"Disk", "Processes", "n2", "n3"},
		},
		clitest.Case{Args: "env status -json py", Out: []string{`"Environment": {`, `"Pool": {`}},
		clitest.Case{Args: "env status -t {{.Pool.Warm}} py", Out: []string{"1\n"}},
		clitest.Case{Args: "env status new", Code: 3, Err: []string{"Error: no such environment"}},
		clitest.Case{Args: "env status broken", Code: 1, Err: []string{"Error: broken"}},
		clitest.Case{Args: "env status", Code: 2, Err: []string{"0 arguments given; it is: drover env status NAME"}},
	)
	api.Set("GET /v1/nodes", "! 500 broken")
	api.Check(clitest.Case{Args: "env status py", Out: []string{"Name = py\n"}, Not: []string{"On node"}}) // nodes are only a remark
}

func TestAnEnvironmentIsDeleted(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{Args: "env delete py", Out: []string{"Deleted environment \"py\".\n"}, Asks: []string{"DELETE /v1/environment/py"}},
		clitest.Case{Args: "env delete broken", Code: 1, Err: []string{"broken"}, Not: []string{"Deleted"}},
	)
}

func TestAPoolIsResized(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Set("POST /v1/environment/py/size", `{"id": "py", "poolSize": 5}`)
	api.Check(
		clitest.Case{
			Args: "env size py 5", Out: []string{"Environment \"py\" keeps 5 warm.\n"},
			Asks: []string{`POST /v1/environment/py/size {"size":5}`},
		},
		clitest.Case{Args: "env size py 5 -was 2", Asks: []string{`{"size":5,"was":2}`}},
		clitest.Case{Args: "env size py many", Code: 2, Err: []string{`size: want a number of runners, got "many"`}},
	)
	api.Set("POST /v1/environment/py/size", refused("409", "conflict", "the pool has another size by now: poolSize is 4, not 2"))
	api.Check(clitest.Case{Args: "env size py 5 -was 2", Code: 1, Err: []string{"poolSize is 4, not 2"}, Not: []string{"keeps"}})
}

// TestFlagsGoOverWhatIsThere: a flag that is not given keeps what the environment has.
func TestFlagsGoOverWhatIsThere(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	for args, want := range map[string][]string{
		"-image new":            {`"image":"new"`, `"poolSize":2`, `"memoryMB":64`, `"idleTimeout":60000000000`, `"A":"b"`},
		"-pool-size 5":          {`"image":"python"`, `"poolSize":5`},
		"-memory 0":             {`"image":"python"`, `"cpu":100`},
		"-network=false":        {`"image":"python"`, `"exposedPorts":[80,81]`},
		"-idle-timeout 90s":     {`"idleTimeout":90000000000`},
		"-env C=d -env E=f=g":   {`"env":{"C":"d","E":"f=g"}`},
		"-meta k=v":             {`"meta":{"k":"v"}`},
		"-port 1 -port 2":       {`"exposedPorts":[1,2]`},
		"-driver docker -cpu 7": {`"driver":"docker"`, `"cpu":7`},
		"-runtime runsc -max-runners 3 -memory-max 9 -disk 8 -pids 6 -user u -work-dir /w": {
			`"runtime":"runsc"`, `"maxRunners":3`, `"memoryMaxMB":9`, `"diskMB":8`, `"pidsLimit":6`, `"user":"u"`, `"workDir":"/w"`,
		},
	} {
		for _, part := range want { // the order of keys is not promised
			api.Check(clitest.Case{Args: "env put -detach " + args + " py", Out: []string{"Replaced environment \"py\"."}, Asks: []string{part}})
		}
	}
	api.Set("PUT /v1/environment/new", `{"id": "new"}`)
	api.Check(
		clitest.Case{Args: "env put -detach new -image host", Asks: []string{`"poolSize":1`}},
		clitest.Case{Args: "env put -detach new -image host -pool-size 0", Asks: []string{`"poolSize":0`}},
		clitest.Case{Args: "env put -detach broken", Code: 1, Err: []string{"broken"}},
		clitest.Case{Args: "env put -memory much py", Code: 2, Err: []string{"invalid argument"}},
		clitest.Case{Args: "env put -env =b py", Code: 2, Err: []string{`-env "=b": want key=value`}},
		clitest.Case{Args: "env put -meta b py", Code: 2, Err: []string{`-meta "b": want key=value`}},
		clitest.Case{Args: "env put -port 0 py", Code: 2, Err: []string{"-port 0 is not from 1 to 65535"}},
		clitest.Case{
			Args: "env put -port 80 -network=false py", Code: 2,
			Err: []string{"-port needs -network: without it nobody reaches a runner"},
		},
		clitest.Case{Args: "env put", Code: 2, Err: []string{"name the environment"}},
	)
	api.Set("PUT /v1/environment/py", refused("400", "invalid", "memoryMB: too little"))
	api.Check(clitest.Case{Args: "env put -detach -memory 1 py", Code: 2, Err: []string{"memoryMB: too little"}, Not: []string{"Replaced"}})
}

func TestAnEnvironmentComesFromAFile(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "env.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	api := clitest.Serve(t, world())
	plain := file(`{"id": "py", "image": "other"}`)
	api.Check(
		clitest.Case{Args: "env put -detach -file " + plain, Asks: []string{`"image":"other","poolSize":0`}},
		clitest.Case{Args: "env put -detach -file " + plain + " -image flag", Asks: []string{`"image":"flag"`}},
		clitest.Case{
			Args: "env put -detach -file " + file(`{"Environment": {"id": "py", "iamge": "x"}}`), Code: 2, Err: []string{`unknown field "iamge"`},
		},
		clitest.Case{
			Args: "env put -detach -file " + file(`{"Environment": `+python+`, "Pool": {}, "identity": {"audience": ["x"]}}`), Code: 2,
			Err: []string{`"identity" is beside the environment, and has to be in it`},
		},
		clitest.Case{Args: "env put -detach -file " + file(`{"Environment": `+python+`, "Pool": {}}`), Asks: []string{`"memoryMB":64`}},
		clitest.Case{Args: "env put -file " + file(`{"id": "py", "poolsz": 3}`), Code: 2, Err: []string{`unknown field "poolsz"`}},
		clitest.Case{Args: "env put -file " + file(`{"id": "py"} {}`), Code: 2, Err: []string{"there is more behind the environment"}},
		clitest.Case{Args: "env put -file " + file(`{`), Code: 2, Err: []string{"reading "}},
		clitest.Case{Args: "env put -file /no/such", Code: 2, Err: []string{"reading /no/such: no such file or directory"}},
	)
	api.Stdin = `{"image": "piped"}`
	api.Check(clitest.Case{Args: "env put -detach -file - py", Asks: []string{`"id":"py","image":"piped"`}})
}

func TestAPoolIsAwaited(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Set("GET /v1/environment/py/pool", `{"size": 2, "warm": 0, "starting": 2}
---
{"size": 2, "warm": 0, "starting": 2}
---
{"size": 2, "warm": 2}`)
	api.Check(clitest.Case{Args: "env put py", Out: []string{" 0 of 2 warm, 2 starting\n 2 of 2 warm\n"}})
	api.Set("GET /v1/environment/py/pool", `{"size": 2, "warm": 0, "lastError": "no such image"}`)
	api.Check(clitest.Case{
		Args: "env put -wait 10ms py", Code: 1,
		Err: []string{
			`the pool of "py" did not fill within 10ms: 0 of 2 warm; last error: no such image; `, "'drover env status py' tells how it stands",
		},
	})
	api.Set("GET /v1/environment/py/pool", refused("404", "not_found", "it was deleted meanwhile"))
	api.Check(clitest.Case{Args: "env put py", Code: 3, Err: []string{"it was deleted meanwhile"}})
}

// TestAPoolThatCannotFillIsNotAwaited: what waiting does not mend ends the wait at once, with the cause. What was known before counts only
// when it came again.
func TestAPoolThatCannotFillIsNotAwaited(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	const starting = `{"size": 2, "starting": 1}`
	const gone = `{"size": 2, "queued": 1, "lastError": "no such\nimage", "final": true, "failedAt": "2026-11-30T08:00:00Z"}`
	const again = `{"size": 2, "queued": 1, "lastError": "no such\nimage", "final": true, "failedAt": "2026-11-30T08:00:09Z"}`
	answers := func(pools ...string) { api.Set("GET /v1/environment/py/pool", strings.Join(pools, "\n---\n")) }
	put := clitest.Case{
		Args: "env put py", Code: 1,
		Err: []string{`the pool of "py" does not fill: no such image (waiting does not mend that); 'drover env status py' tells`},
	}
	answers(starting, starting, gone)
	api.Check(put)
	answers(gone, gone, starting, again)
	put.Out = []string{" 0 of 2 warm, 1 queued; last error: no such image\n 0 of 2 warm, 1 starting\n"}
	api.Check(put)
	answers(starting, `{"size": 2, "queued": 1, "lastError": "busy"}`, `{"size": 2, "warm": 2}`)
	api.Check(clitest.Case{Args: "env put py", Out: []string{"last error: busy\n 2 of 2 warm\n"}})
}

// TestADriverThatNoNodeHas ends the wait, too, unless the fleet may bring a node that has it.
func TestADriverThatNoNodeHas(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	missing := `{"size": 1, "queued": 1, "lastError": "missing drivers: docker", "missingDriver": "docker"}`
	node := func(docker string) string {
		return `[{"Status": "ready", "Drivers": {"exec": {"Detected": true, "Healthy": true}, "qemu": {}, "docker": ` + docker + `}}]`
	}
	api.Set("GET /v1/environment/py/pool", missing)
	api.Set("GET /v1/nodes", node("{}"))
	api.Set("GET /v1/fleet/pools", "[]")
	api.Set("GET /v1/fleet/waiting", "[]")
	api.Set("GET /v1/job/environment-py", `{"ID": "environment-py", "NodePool": "default"}`)
	hopeless := clitest.Case{Args: "env put py", Code: 1, Err: []string{
		`the pool of "py" does not fill: no node has the driver docker, and no pool of the fleet brings one that does; there are exec; `,
	}}
	api.Check(hopeless)
	api.Set("GET /v1/fleet/pools", `[{"Name": "std", "Policy": {"NodePool": "other"}}]`)
	api.Check(hopeless)
	api.Set("GET /v1/fleet/pools", `[{"Name": "std", "Policy": {"NodePool": "default"}}]`)
	api.Set("GET /v1/fleet/waiting", `[{"Pool": "std", "Class": "environment-py/runner", "Reason": "needs driver docker, which it has not"}]`)
	api.Check(hopeless)
	waits := clitest.Case{Args: "env put -wait 20ms py", Code: 1, Err: []string{`the pool of "py" did not fill within 20ms`}}
	for _, nodes := range []string{node(`{"Detected": true}`), "[]", "! 403 denied"} { // not well, none yet, and not for us
		api.Set("GET /v1/nodes", nodes)
		api.Check(waits)
	}
	api.Set("GET /v1/nodes", node("{}"))
	api.Set("GET /v1/fleet/waiting", "[]") // it may bring one
	api.Check(waits)
}
