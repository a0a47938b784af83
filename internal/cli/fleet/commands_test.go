package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	vocabulary "github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/cli/fleet"
	"github.com/drover-project/drover/internal/config"
)

// world is a fleet with a pool of two machines and work that waits.
func world() map[string]string {
	const i1 = `{"ID": "3f2a0000-0000-0000-0000-000000000000", "Pool": "std", "Type": "small", "Zone": "a", "Market": "spot",
		"State": "active",
		"NodeID": "n1", "Price": 0.1, "Charged": 0.25, "Work": 2, "Bought": "web waited", "CreatedAt": "2026-01-01T00:00:00Z"}`
	return map[string]string{
		"GET /v1/fleet/pools": `[
			{"Name": "std", "Policy": {"Name": "std", "Provider": "cloud", "NodePool": "default", "Max": 5, "PauseDestroys": true}, "Least": 1,
				"Machines": {"booting": 1, "active": 2}, "Waiting": [{"Count": 3}, {"Count": 1}], "PerHour": 0.2, "Today": 4.5,
				"Problem": "no such region", "Alert": "breaker open", "Lacks": "1 is missing", "Failed": "a create failed 7s ago: no bridge",
				"Retiring": true, "PauseCreates": true, "PauseReason": "too dear"},
			{"Name": "free", "Policy": {"Name": "free", "Provider": "here"}}]`,
		"GET /v1/fleet/instances": `[` + i1 + `, {"ID": "i2", "Pool": "std", "State": "booting", "Reason": "asked for"}]`,
		"GET /v1/fleet/instance/3f2a": `{"Instance": ` + i1 + `, "Jobs": [{"Namespace": "default", "ID": "web"}, {"Namespace": "dev", "ID": "x"}],
			"Text": ["It was bought for web.", "It is busy."], "History": [{"What": "create", "Count": 2, "Why": "demand", "Reason": "web waits"},
			{"What": "register", "Why": "call"}]}`,
		"GET /v1/fleet/instance/web":  `! 404 {"Message": "the fleet has no instance \"web\""}`,
		"GET /v1/fleet/instance/done": `! 404 {"Message": "the fleet has no instance \"done\""}`,
		"GET /v1/fleet/instance/none": `! 404 {"Message": "the fleet has no instance \"none\""}`,
		"GET /v1/fleet/waiting": `[{"Class": "default/web/g", "Pool": "std", "Count": 3, "Position": 1, "Of": 2, "Bought": 1,
			"Reason": "it boots",
			"Since": "2026-01-01T00:00:00Z"}, {"Class": "default/webx/g", "Pool": "std", "Count": 1}]`,
		"GET /v1/job/done/allocations": `[
			{"ID": "a1", "Name": "done.g[0]", "ClientStatus": "running", "NodeID": "n1", "NodeName": "box"},
			{"ID": "a2", "Name": "done.g[1]", "ClientStatus": "pending"}, {"ID": "a3", "Name": "done.g[2]", "ClientStatus": "complete"}]`,
		"GET /v1/job/none/allocations": `[]`,
		"GET /v1/fleet/plan": `[{"Pool": "std", "At": "2026-01-01T00:00:00Z", "Note": "creates are paused", "Deferred": 2, "Actions": [
			{"Kind": "create", "Count": 2, "Offering": "small/a", "PerHour": 0.2, "Why": "demand", "Reason": "web waits"},
			{"Kind": "destroy", "Instance": "i2", "Why": "idle"}], "Waiting": [{"Class": "default/web/g", "Count": 3}]}, {"Pool": "free"}]`,
		"GET /v1/fleet/audit": `[{"Pool": "std", "Instance": "3f2a0000-0000-0000-0000-000000000000", "What": "create", "Count": 2,
			"Why": "demand"},
			{"Pool": "std", "Offering": "small/a", "What": "refused"}, {"Provider": "cloud", "What": "listed"}]`,
		"GET /v1/fleet/cost": `{"Lines": [{"Key": "std", "Pool": "std", "Cost": 0.5, "Hours": 2}], "Total": 0.75}`,
	}
}

func TestPoolsAndMachinesAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "fleet pools", Out: []string{
				"std cloud default 1-5 1 booting, 2 active 4 ",
				"no such region; breaker open; 1 is missing; a create failed 7s ago: no bridge; " +
					"ends with its last machine; creates and destroys paused: too dear\n",
				"free here - 0-any - - - - -\n",
			},
		},
		clitest.Case{Args: "fleet pools -json", Out: []string{`"PauseReason": "too dear"`}},
		clitest.Case{Args: "fleet pools -t {{range.}}{{.Name}}.{{end}}", Out: []string{"std.free.\n"}},
		clitest.Case{
			Args: "fleet list", Out: []string{"3f2a0000 std small a spot active ", "i2 std - - - booting "},
			Asks: []string{"pool=&state="},
		},
		clitest.Case{
			Args: "fleet list -verbose -pool std -state booting", Out: []string{"3f2a0000-0000"},
			Asks: []string{"pool=std&state=booting"},
		},
		clitest.Case{Args: "fleet list -json", Out: []string{`"Zone": "a"`}},
	)
	api.Set("GET /v1/fleet/pools", "[]")
	api.Set("GET /v1/fleet/instances", "[]")
	api.Check(
		clitest.Case{Args: "fleet pools", Out: []string{"There are none: give the agent a fleet block with pools, or use 'drover fleet put'."}},
		clitest.Case{Args: "fleet list", Out: []string{"There are none."}},
	)
	for _, command := range []string{"pools", "instances:list", "plan", "audit", "cost"} {
		path, name, found := strings.Cut(command, ":")
		if !found {
			name = path
		}
		api.Set("GET /v1/fleet/"+path, `! 501 {"Code": "not_implemented", "Message": "this agent has no fleet"}`)
		api.Check(clitest.Case{
			Args: "fleet " + name, Code: 1, Err: []string{"Error: this agent has no fleet\n"},
			Not: []string{"not_implemented"},
		})
		api.Set("GET /v1/fleet/"+path, "! 502 a proxy's words")
		api.Check(clitest.Case{Args: "fleet " + name, Code: 1, Err: []string{"Error: a proxy's words\n"}})
	}
}

func TestAFileIsApplied(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	const changes = `"Server": "s1.global", "Version": 7, "Changes": [{"Pool": "std", "What": "change", "Machines": 2, "Replaces": true,
		"Keys": [{"Key": "Max", "Now": "3", "Next": "4"}, {"Key": "Image", "Now": "a", "Next": "b"}]}, {"Pool": "new", "What": "add"}]`
	api.Set("GET /v1/fleet/apply", `{`+changes+`}`)
	api.Set("PUT /v1/fleet/apply", `{`+changes+`}`)
	rows := []string{"std change Max 3 4 2, replaced as they become idle\nstd change Image a b -\nnew add - - - -\n"}
	api.Check(
		clitest.Case{Args: "fleet status", Out: append(rows, "s1.global", "7")},
		clitest.Case{Args: "fleet apply -preview", Out: rows, Not: []string{"are changed"}},
		clitest.Case{Args: "fleet apply nothing", Code: 2},
	)
	api.Set("PUT /v1/fleet/apply", `{`+changes+`, "Applied": true}`)
	api.Check(
		clitest.Case{Args: "fleet apply", Out: append(rows, "2 pools are changed, by s1.global.")},
		clitest.Case{Args: "fleet apply -json", Out: []string{`"Applied": true`}, Not: []string{"are changed"}},
	)
	api.Set("PUT /v1/fleet/apply", `{"Server": "s1.global", "Changes": []}`)
	api.Check(clitest.Case{Args: "fleet apply", Out: []string{"The fleet's pools are those of the file."}})
	api.Set("PUT /v1/fleet/apply", `! 409 {"Message": "Version: the fleet's pools changed meanwhile"}`)
	api.Check(clitest.Case{Args: "fleet apply", Code: 1, Err: []string{"Version: the fleet's pools changed meanwhile"}})
}

func TestAMachineIsExplained(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "fleet status 3f2a", Out: []string{
				"Jobs = default/web, dev/x\n", "Why\nIt was bought for web.\nIt is busy.\n", "create 2 demand web waits\n", "register call -\n",
			},
		},
		clitest.Case{Args: "fleet explain 3f2a", Out: []string{"It was bought for web."}},
		clitest.Case{Args: "fleet status -json 3f2a", Out: []string{`"Text": [`}},
		clitest.Case{Args: "fleet status web", Code: 3, Err: []string{`Error: the fleet has no instance "web"`}}, // only explain takes jobs
		clitest.Case{Args: "fleet explain web", Out: []string{"default/web/g std 3 ", "1 of 2 0 1 - it boots\n"}, Not: []string{"webx"}},
		clitest.Case{Args: "fleet explain default/web/g", Code: 1, Err: []string{"no answer"}},
		clitest.Case{Args: "fleet explain -json web", Out: []string{`"Class": "default/web/g"`}},
		clitest.Case{
			Args: "fleet explain done", Not: []string{"done.g[2]"}, Out: []string{
				"No work of job \"done\" waits for machines.\n", "done.g[0] a1 running box 3f2a0000 std web waited\n",
				"done.g[1] a2 pending - - - it is on no machine of the fleet\n",
			},
		},
		clitest.Case{Args: "fleet explain -t {{.|len}} done", Out: []string{"3\n"}},
		clitest.Case{
			Args: "fleet explain none", Code: 3,
			Err: []string{`no instance "none"; and no work of a job "none" waits for the fleet's machines`},
		},
	)
	api.Set("GET /v1/fleet/instances", "! 500 broken")
	api.Check(clitest.Case{Args: "fleet explain done", Code: 1, Err: []string{"broken"}})
	api.Set("GET /v1/fleet/waiting", "! 500 broken")
	api.Check(clitest.Case{Args: "fleet explain web", Code: 1, Err: []string{"broken"}})
}

func TestPlansAndWhatWasDone(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "fleet plan", Out: []string{
				"Pool std at 2026-01-01", "Note: creates are paused\n", "Note: 2 more machines are wanted, and wait for their turn\n",
				"create 2 small/a 0.20 demand web waits\n", "destroy i2 - idle -\n", "Waiting work\n", "Pool free at", "Nothing is to be done.",
			},
		},
		clitest.Case{Args: "fleet plan std", Asks: []string{"/v1/fleet/plan?pool=std"}, Out: []string{"Pool std"}},
		clitest.Case{Args: "fleet plan -json", Out: []string{`"Deferred": 2`}},
		clitest.Case{
			Args: "fleet audit -pool std -instance i1 -n 7", Asks: []string{"instance=i1&limit=7&pool=std"},
			Out: []string{"std 3f2a0000 create 2 demand -\n", "std small/a refused - -\n", "- cloud listed - -\n"},
		},
		clitest.Case{Args: "fleet audit -json", Out: []string{`"What": "listed"`}},
		clitest.Case{
			Args: "fleet cost", Out: []string{"Pool Pool Cost Machine hours\nstd std 0.5000 2.00\nall - 0.7500 -\n"},
			Asks: []string{"by=pool&from="},
		},
		clitest.Case{
			Args: "fleet cost -by machine -from 2026-01-01", Out: []string{"Machine Pool"},
			Asks: []string{"by=machine&from=2026-01-01"},
		},
		clitest.Case{Args: "fleet cost -json", Out: []string{`"Total": 0.75`}},
	)
	for path, none := range map[string]string{"plan": "There are no pools.", "audit": "Nothing was done."} {
		api.Set("GET /v1/fleet/"+path, "[]")
		api.Check(clitest.Case{Args: "fleet " + path, Out: []string{none}})
	}
	api.Set("GET /v1/fleet/cost", "{}")
	api.Check(clitest.Case{Args: "fleet cost", Out: []string{"Nothing was paid."}})
}

const poolFile = `pool "std" {
  provider = "cloud"
  type "small" {
    cpu    = 2000
    memory = 4096
    price  = 0.1
  }
}
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.hcl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestMachinesAndPoolsAreSteered(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"PUT /v1/fleet/pool/std": "{}", "PUT /v1/fleet/pool/std/pause": "{}", "DELETE /v1/fleet/pool/std": "{}",
		"PUT /v1/fleet/instance/i9/kill":      `! 404 {"Message": "the fleet has no instance \"i9\""}`,
		"PUT /v1/fleet/instance/i9/interrupt": `! 404 {"Message": "the fleet has no instance \"i9\""}`,
	}
	for _, action := range []string{"hold", "drain", "run", "kill", "interrupt"} {
		answers["PUT /v1/fleet/instance/i1/"+action] = "{}"
	}
	api := clitest.Serve(t, answers)
	for _, action := range []string{"hold", "drain", "run", "kill"} {
		api.Check(clitest.Case{
			Args: "fleet " + action + " -reason idle i1", Out: []string{"i1: " + action + "\n"},
			Asks: []string{"PUT /v1/fleet/instance/i1/" + action + ` {"Reason":"idle"}`},
		})
	}
	api.Check(
		// the others are killed
		clitest.Case{Args: "fleet kill i9 i1", Code: 3, Out: []string{"i1: kill\n"}, Err: []string{`has no instance "i9"`}},
		clitest.Case{Args: "fleet interrupt i9 i1", Code: 3, Out: []string{"i1: taken back at "}, Err: []string{`has no instance "i9"`}},
		clitest.Case{Args: "fleet interrupt -in -1s i1", Code: 2, Err: []string{"-in: must be above 0, got -1s"}},
		clitest.Case{Args: "fleet pause std", Out: []string{"std: pause\n"}, Asks: []string{`"Creates":true,"Destroys":true`}},
		clitest.Case{
			Args: "fleet pause -destroys -reason x std", Out: []string{"std: pause\n"},
			Asks: []string{`"Creates":false,"Destroys":true`},
		},
		clitest.Case{Args: "fleet resume std", Out: []string{"std: resume\n"}, Asks: []string{`"Creates":false,"Destroys":false`}},
		clitest.Case{Args: "fleet resume -creates std", Code: 2, Err: []string{"unknown flag: --creates"}},
		clitest.Case{
			Args: "fleet delete std", Out: []string{"Pool \"std\" ends with its last machine.\n"},
			Asks: []string{"DELETE /v1/fleet/pool/std"},
		},
		clitest.Case{Args: "fleet put " + write(t, poolFile), Out: []string{"Pool \"std\" is set.\n"}, Asks: []string{"PUT /v1/fleet/pool/std"}},
		clitest.Case{Args: "fleet put " + write(t, `pool "std" { colour = 1 }`), Code: 2, Err: []string{"colour"}},
		clitest.Case{Args: "fleet put /no/such", Code: 2, Err: []string{"reading /no/such"}},
	)
	api.Set("PUT /v1/fleet/pool/std", `! 400 {"Message": "max: below min"}`)
	api.Set("PUT /v1/fleet/pool/std/pause", `! 404 {"Message": "there is no pool"}`)
	api.Set("DELETE /v1/fleet/pool/std", `! 404 {"Message": "there is no pool"}`)
	api.Check(
		clitest.Case{Args: "fleet put " + write(t, poolFile), Code: 2, Err: []string{"Error: max: below min\n"}, Not: []string{"is set"}},
		clitest.Case{Args: "fleet pause std", Code: 3, Err: []string{"Error: there is no pool\n"}},
		clitest.Case{Args: "fleet delete std", Code: 3, Err: []string{"Error: there is no pool\n"}},
	)
}

func TestACheckTellsItsSteps(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{"GET /v1/fleet/pool/made": `{"Name": "made", "Policy": {"Name": "made", "Provider": "cloud"}}`})
	var asked vocabulary.Check
	steps, failure := []vocabulary.CheckStep{{Name: "reach", Took: 1500 * time.Millisecond, Says: "it answers"}}, error(nil)
	api.Parts.Fleet = fleet.Local{Check: func(_ context.Context, _ *config.Agent, ask vocabulary.Check,
		report func(vocabulary.CheckStep),
	) error {
		asked = ask
		for _, s := range steps {
			report(s)
		}
		return failure
	}}
	configured := write(t, "server { enabled = true }\ndata_dir = \"/x\"\n")
	api.Check(clitest.Case{
		Args: "fleet check made -config " + configured + " -spot -type big -zone b -within 3m -keep -listen :1 -dial h:1",
		Out:  []string{"ok 1.5s reach it answers\n", "Pool \"made\" can buy machines.\n"},
	})
	require.Equal(t, "cloud", asked.Policy.Provider, "it was made over the API")
	asked.Policy = nil
	require.Equal(t, vocabulary.Check{
		Pool: "made", Type: "big", Zone: "b", Market: vocabulary.MarketSpot, Within: 3 * time.Minute, Keep: true, Listen: ":1", Dial: "h:1",
	}, asked)
	api.Check(
		clitest.Case{Args: "fleet check unknown -config " + configured, Out: []string{"ok"}},
		clitest.Case{Args: "fleet check made -json -config " + configured, Out: []string{`"Name": "reach"`}, Not: []string{"can buy"}},
		clitest.Case{Args: "fleet check made", Code: 2, Err: []string{"-config: name the agent's configuration"}},
		clitest.Case{Args: "fleet check made -config /no/such", Code: 2, Err: []string{"/no/such"}},
	)
	failure = errors.New("unreachable")
	api.Check(clitest.Case{Args: "fleet check made -config " + configured, Code: 1, Err: []string{"Error: unreachable"}})
	steps = append(steps, vocabulary.CheckStep{Name: "create", Error: "no quota\nask for more"})
	api.Check(clitest.Case{ // a step told it already
		Args: "fleet check made -config " + configured, Code: 1,
		Out: []string{"FAILED 0s create no quota\n ask for more"}, Not: []string{"Error"},
	})
}

func TestASimulationIsShown(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	var asked vocabulary.Simulation
	results := []vocabulary.Simulated{{
		Rules: "drover", Tasks: 10, Cost: 3, Bound: 2, Total: 4, Waiting: 1, Machines: 2, Peak: 2, Hours: 1.5, WaitMean: 90 * time.Second,
		WaitP50: 500 * time.Millisecond, Until: 2 * time.Hour, Cloud: "EC2's limits", Hash: "0123456789abcdef",
		Stopped: []vocabulary.SimulatedStop{
			{What: "the pool's maximum", Waited: time.Minute},
			{What: "the quota", Waited: 21066872589 * time.Nanosecond},
		},
		Points: []vocabulary.SimulatedPoint{{}, {At: time.Hour, Machines: 2, Waiting: 3}, {At: 2 * time.Hour}},
	}, {Rules: "karpenter", Tasks: 10}}
	api.Parts.Fleet.Simulate = func(_ context.Context, ask vocabulary.Simulation) ([]vocabulary.Simulated, error) {
		asked = ask
		if ask.PerHour < 0 {
			return nil, errors.New("-per-hour: below 0")
		}
		return results, nil
	}
	file := write(t, poolFile)
	api.Check(
		clitest.Case{Args: "fleet simulate -workload bursty -per-hour 7 -seed 3 " + file, Out: []string{
			"drover ", " 1.50 1m30s 0.5s ", "karpenter", "Bound by the pool's maximum: tasks waited for it, 1m0s together.\n",
			"Bound by the quota: tasks waited for it, 21.1s together.\n",
			"Machines, and waiting tasks below, over 2h0m\n", "2 |", "3 |", "█", "EC2's limits.\n", "Hash 0123456789ab:",
		}},
		clitest.Case{Args: "fleet simulate -json " + file, Out: []string{`"Rules": "karpenter"`}},
		clitest.Case{Args: "fleet simulate -per-hour -1 " + file, Code: 1, Err: []string{"-per-hour: below 0"}},
		clitest.Case{Args: "fleet simulate -pool other " + file, Code: 2, Err: []string{"-pool: the file has std; choose one"}},
		clitest.Case{Args: "fleet simulate -trace /no/such " + file, Code: 2, Err: []string{"-trace: open /no/such"}},
		clitest.Case{Args: "fleet simulate /no/such", Code: 2, Err: []string{"reading /no/such"}},
	)
	trace := write(t, "0 60 100 100\n")
	api.Check(clitest.Case{Args: "fleet simulate -provider docker -trace " + trace + " " + file, Out: []string{"drover"}})
	require.Equal(t, "0 60 100 100\n", string(asked.Trace))
	require.Equal(t, "docker", asked.Provider)
	require.Equal(t, "std", asked.Policy.Name)
	results = results[1:]
	// there is no picture of nothing
	api.Check(clitest.Case{Args: "fleet simulate " + file, Out: []string{"karpenter"}, Not: []string{"Hash"}})
}

// TestMachinesThatAreNotThereYet have neither a price nor an age.
func TestMachinesThatAreNotThereYet(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, map[string]string{
		"GET /v1/fleet/instances":   `[{"ID": "i1", "Pool": "std", "State": "planned"}]`,
		"GET /v1/fleet/instance/i1": `{"Instance": {"ID": "i1", "Pool": "std", "State": "planned"}}`,
	})
	api.Check(
		clitest.Case{Args: "fleet list", Out: []string{"i1 std - - - planned - - - - 0 - -\n"}},
		clitest.Case{Args: "fleet status i1", Out: []string{"State = planned\n", "Nothing is remembered."}, Not: []string{"Per hour", "Created"}},
	)
}

// TestAPictureOfASimulation draws what there is: of little, each point fills the columns to the next.
func TestAPictureOfASimulation(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	var points []vocabulary.SimulatedPoint
	api.Parts.Fleet.Simulate = func(context.Context, vocabulary.Simulation) ([]vocabulary.Simulated, error) {
		return []vocabulary.Simulated{{Rules: "drover", Points: points}}, nil
	}
	file := write(t, poolFile)
	points = []vocabulary.SimulatedPoint{{Machines: 8}}
	one := api.Run("fleet", "simulate", file).Out
	require.Contains(t, one, "      8 |"+strings.Repeat("█", 100), "one moment fills the picture")
	require.Contains(t, one, "      1 |\n", "nothing waits")
	points = nil
	for i := range 200 {
		points = append(points, vocabulary.SimulatedPoint{At: time.Duration(i) * time.Minute, Machines: i / 25, Waiting: 7 - i/25})
	}
	many := api.Run("fleet", "simulate", file).Out
	require.Equal(t, 2, strings.Count(many, "      7 |"), "both have the same height")
	require.Contains(t, many, "▁")
	for line := range strings.Lines(many) {
		if strings.Contains(line, "|") {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 109)
		}
	}
}
