package rendering

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/service"
)

// oracle is testdata/oracle/cases.json.
type oracle struct {
	Variables []*secrets.Variable
	Lists     map[string][]string
	Absent    []string
	Services  map[string][]*service.Registration
	Names     []exchange.ServiceTags
	Env       map[string]string
	Sources   []string
}

// outcome is what consul-template made of a case: testdata/consul-template.json.
type outcome struct {
	Source, Text string
	Failed       bool
	Missing      []string
}

func (o *oracle) known(t *testing.T) map[exchange.Question]string {
	out := map[exchange.Question]string{}
	put := func(kind, namespace, name string, v any) {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		out[exchange.Question{Kind: kind, Namespace: namespace, Name: name}] = string(data)
	}
	for _, v := range o.Variables {
		put(exchange.AskVariable, v.Namespace, v.Path, v)
	}
	for _, path := range o.Absent {
		out[exchange.Question{Kind: exchange.AskVariable, Namespace: "default", Name: path}] = ""
	}
	for prefix, paths := range o.Lists {
		list := []secrets.VariableMetadata{}
		for _, p := range paths {
			list = append(list, secrets.VariableMetadata{Namespace: "default", Path: p})
		}
		put(exchange.AskVariables, "default", prefix, list)
	}
	for name, list := range o.Services {
		put(exchange.AskService, "default", name, list)
	}
	put(exchange.AskServices, "default", "", o.Names)
	return out
}

func read(t *testing.T, path string, v any) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, v))
}

// Templates come out as consul-template has them, byte by byte: testdata/oracle asked it.
func TestAsConsulTemplate(t *testing.T) {
	local := time.Local
	time.Local = time.UTC // as the oracle's
	t.Cleanup(func() { time.Local = local })
	cases, want := &oracle{}, []outcome{}
	read(t, "testdata/oracle/cases.json", cases)
	read(t, "testdata/consul-template.json", &want)
	require.Len(t, want, len(cases.Sources))
	for i, w := range want {
		require.Equal(t, cases.Sources[i], w.Source, "go run . in testdata/oracle")
		packed, err := Func(Request{Source: w.Source, Env: cases.Env, Namespace: "default", Region: "global", Known: cases.known(t)}.Pack())
		if len(w.Missing) > 0 && !strings.HasPrefix(w.Missing[0], "nomad.") {
			require.Equal(t, drover.Invalid, drover.CodeOf(err), "it waits for Consul or Vault: %s", w.Source)
			continue
		}
		if w.Failed {
			require.Error(t, err, w.Source)
			continue
		}
		require.NoError(t, err, w.Source)
		got, err := Unpack(packed)
		require.NoError(t, err)
		require.Equal(t, w.Text, string(got.Text), w.Source)
		var missing []string
		for _, m := range got.Missing {
			missing = append(missing, m.Shown)
		}
		require.Equal(t, w.Missing, missing, w.Source)
	}
}

// What is not known yet is asked for, and errors that come of it do not count.
func TestAsks(t *testing.T) {
	t.Parallel()
	r := Request{Namespace: "n", Region: "global", Strict: true, Known: map[exchange.Question]string{}}
	r.Source = `{{ with nomadVar "a" }}{{ range nomadVarList .path.Value }}{{ . }}{{ end }}{{ end }}{{ (nomadVar "b@m").x | parseJSON }}` +
		`{{ nomadService 1 "k" "s" }}{{ nomadServices }}{{ file "local/f" }}`
	got, err := Render(r)
	require.NoError(t, err)
	var shown []string
	for _, u := range got.Used {
		shown = append(shown, u.Shown)
	}
	require.Equal(t, []string{"nomad.var.block(a@n.global)", "nomad.var.block(b@m.global)"}, shown, "the second one ended it")
	require.Equal(t, got.Used, got.Missing)

	r.Source = `{{ with nomadVar "a" }}{{ range nomadVarList .path.Value }}{{ . }}{{ end }}{{ end }}{{ len (nomadService 1 "k" "s") }}`
	r.Known[exchange.Question{Kind: exchange.AskVariable, Namespace: "n", Name: "a"}] = `{"Items":{"path":"p/"}}`
	got, err = Render(r)
	require.NoError(t, err)
	require.Equal(t, []exchange.Question{
		{Kind: exchange.AskVariables, Namespace: "n", Name: "p/"}, {Kind: exchange.AskService, Namespace: "n", Name: "s"},
	}, []exchange.Question{got.Missing[0].Question, got.Missing[1].Question})

	for source, says := range map[string]string{
		`{{ nomadVar "a@b.other" }}`:          `region "other": templates read what is in their own region, "global"`,
		`{{ nomadService "a@other" }}`:        `region "other"`,
		`{{ nomadServices "other" }}`:         "the format is @REGION",
		`{{ nomadVarList "a" "b" }}`:          "takes one prefix or none",
		`{{ nomadService "a" 1 "k" }}`:        "how many, a key and the name",
		`{{ sockaddr "GetPrivateIP" }}`:       "is disabled",
		`{{ sprig_env "A" }}{{ toUpper "" }}`: `"toUpper" is disabled on this node`,
	} {
		_, err := Render(Request{Source: source, Namespace: "n", Region: "global", Deny: []string{"toUp*"}})
		require.ErrorContains(t, err, says, source)
	}
}

// An error names no value of a variable: it goes into events that more people read.
func TestErrorsHideItems(t *testing.T) {
	t.Parallel()
	_, err := Render(Request{
		Source: `{{ with nomadVar "a" }}{{ parseInt .x.Value }}{{ end }}`, Namespace: "n", Region: "global",
		Known: map[exchange.Question]string{{Kind: exchange.AskVariable, Namespace: "n", Name: "a"}: `{"Items":{"x":"hunter2"}}`},
	})
	require.ErrorContains(t, err, "[redacted]")
	require.NotContains(t, err.Error(), "hunter2")
}
