package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func TestDoubleDashes(t *testing.T) {
	t.Parallel()
	a := &App{Getenv: os.Getenv}
	for in, want := range map[string]string{
		"agent -dev -http-port 0":                       "agent --dev --http-port 0",
		"agent -config=x -help":                         "agent --config=x --help",
		"job run -var a=b -detach x.hcl":                "job run --var a=b --detach x.hcl",
		"job -namespace run run x.hcl":                  "job --namespace run run x.hcl",
		"job run -nope x.hcl":                           "job run --nope x.hcl",
		"job status -t {{.ID}} web":                     "job status -t {{.ID}} web",
		"alloc logs -f -n 5 -tail 3f -stderr":           "alloc logs -f -n 5 --tail 3f --stderr",
		"alloc exec -task t 3f ls -address -la":         "alloc exec --task t 3f ls -address -la",
		"alloc exec -i -t -job j -- sh -c x":            "alloc exec -i -t --job j -- sh -c x",
		"run scratch -f a.py -env A=b -- sh -c -stdin":  "run scratch -f a.py --env A=b -- sh -c -stdin",
		"run scratch ls -la -address x":                 "run scratch -- ls -la -address x",
		"run -address=x scratch -keep ls --all -- -b":   "run --address=x scratch --keep -- ls --all -- -b",
		"run run run -run":                              "run run -- run -run",
		"run -it scratch -- true":                       "run -it scratch -- true",
		"run -limit-wall 3s -address=http://x s -- cmd": "run --limit-wall 3s --address=http://x s -- cmd",
		"job run -=x --- -é":                            "job run -=x --- --é",
		"job run -":                                     "job run -",
	} {
		got := strings.Join(doubleDashes(a.root(), strings.Fields(in)), " ")
		require.Equal(t, want, got, in)
	}
}

func TestEveryCommandSaysWhatItIs(t *testing.T) {
	t.Parallel()
	a := &App{Getenv: os.Getenv}
	todo := a.root().Commands()
	for len(todo) > 0 {
		c := todo[0]
		todo = append(todo[1:], c.Commands()...)
		require.NotEmpty(t, c.Short, c.CommandPath())
		require.NotNil(t, c.RunE, c.CommandPath())
	}
}

func TestEndsNameTheirReason(t *testing.T) {
	t.Parallel()
	a := &App{}
	for want, r := range map[string]execution.Receipt{
		"the command was ended: its runner ended: the node of the runner was lost": {Cause: execution.CauseRunnerGone, Error: "the node of the runner was lost"},
		"the command was ended: killed by request: it had 9 processes":             {Cause: execution.CauseKilled, Error: "it had 9 processes"},
		"the command was ended: it took longer than -limit-wall":                   {Cause: execution.CauseTimeout},
		"the command was not started: no such directory: /x":                       {Cause: execution.CauseStartFailed, Error: "no such directory: /x"},
	} {
		r.ExitCode = 137
		require.EqualError(t, a.ended(&r, false), want)
	}
}

func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 3, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 2, "a\nb\n"}, {"a\nb\n", 9, "a\nb\n"}, {"\n\n\n", 1, "\n"},
	} {
		require.Equal(t, c.want, string(lastOf([]byte(c.text), c.lines)), "%q", c.text)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	self := func(s string) string { return s }
	list := []string{"web", "web-2", "api"}
	got, err := pick("job", "web", list, self, self)
	require.NoError(t, err)
	require.Equal(t, "web", got, "an exact match wins")
	got, err = pick("job", "a", list, self, self)
	require.NoError(t, err)
	require.Equal(t, "api", got)
	_, err = pick("job", "we", list, self, self)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "2 jobs begin with \"we\":\n  web  web\n  web-2  web-2")
	_, err = pick("job", "x", list, self, self)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

func TestReasons(t *testing.T) {
	t.Parallel()
	got := reasons(&drover.AllocationMetric{
		NodesEvaluated: 4, NodesInPool: 4, NodePool: "default", NodesAvailable: map[string]int{"dc1": 4, "dc2": 0},
		ConstraintFiltered: map[string]int{"missing drivers": 2}, NodesExhausted: 2, DimensionExhausted: map[string]int{"memory": 1, "cpu": 1},
	})
	require.Empty(t, cmp.Diff([]string{
		`no node is available in datacenter "dc2"`, "missing drivers: 2 nodes left out", "2 nodes without enough room",
		"not enough cpu on 1 node", "not enough memory on 1 node",
	}, got))
}

func TestDiffOfAnAddedJob(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	(&differ{w: &b}).job(&drover.JobDiff{
		Type: drover.DiffAdded, ID: "j", Fields: []*drover.FieldDiff{{Type: drover.DiffEdited, Name: "Priority", Old: "0", New: "50"}},
		TaskGroups: []*drover.TaskGroupDiff{{
			Type: drover.DiffAdded, Name: "g", Updates: map[string]uint64{"create": 2},
			Objects: []*drover.ObjectDiff{{Type: drover.DiffDeleted, Name: "Disk", Fields: []*drover.FieldDiff{{Type: drover.DiffDeleted, Name: "Size", Old: "1"}}}},
			Tasks:   []*drover.TaskDiff{{Type: drover.DiffNone, Name: "same"}, {Type: drover.DiffEdited, Name: "t", Annotations: []string{"forces create"}}},
		}},
	})
	require.Equal(t, `+ Job: "j"
  + Priority: "50"
+ Task Group: "g" (2 create)
  - Disk {
    - Size: "1"
  }
  +/- Task: "t" (forces create)
`, b.String())
}

func TestTables(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, table(&b, "none", "ID|Name", [][]string{{"1", "a\x1b[2Jb\nc"}, {"22", ""}}))
	require.Equal(t, "ID  Name\n1   a [2Jb c\n22  -\n", b.String())
	b.Reset()
	require.NoError(t, table(&b, "none", "ID", nil))
	require.Equal(t, "none\n", b.String())
	require.Equal(t, "1.5 KiB", bytesText(1536))
	require.Equal(t, "2d3h", span(51*time.Hour+time.Minute))
	require.Equal(t, "1m1s", span(61*time.Second))
}

func TestSettings(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NOMAD_ADDR": "http://n:1", "DROVER_TOKEN": "d", "NOMAD_TOKEN": "n", "NOMAD_NAMESPACE": "ns"}
	a := &App{Getenv: func(k string) string { return env[k] }}
	a.target.namespace = "flag"
	got := a.resolved()
	require.Equal(t, "http://n:1", got.address)
	require.Equal(t, "d", got.token, "Drover's own comes first")
	require.Equal(t, "flag", got.namespace, "a flag comes before all")
	require.Equal(t, defaultAddress, (&App{Getenv: func(string) string { return "" }}).resolved().address)
	a.target.caCert = "/no/such"
	_, err := a.asks()
	require.ErrorContains(t, err, "-ca-cert")
}
