package jobspec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Arguments are kept in maps, whose order is random: twenty runs would hardly all give the same order by chance.
func TestParseReportsFaultsInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	text := `job "x" {
  colour   = 1
  priority = "high"
  thing { }
  group "g" {
    shape           = 1
    shutdown_delay  = "soon"
  }
}
variable "v" { }
`
	want := []string{"colour", "priority", "thing", "shape", "shutdown_delay", "was not given", "declares no variable"}
	for range 20 {
		_, err := Parse([]byte(text), Options{Vars: map[string]string{"w": "1"}, VarNames: []string{"w"}})
		require.Error(t, err)
		rest := err.Error()
		for _, word := range want {
			_, after, found := strings.Cut(rest, word)
			require.True(t, found, "%q is missing or out of order in %s", word, err)
			rest = after
		}
	}
}

// Nomad's order: the default, the environment, the files, the flags; each wins over the former.
func TestVariablesGiveWayInNomadsOrder(t *testing.T) {
	t.Parallel()
	text := []byte("variable \"v\" {\n  default = \"default\"\n}\njob \"a\" {\n  name = var.v\n}\n")
	env := map[string]string{"v": "environment", "other": "of another file"}
	for want, o := range map[string]Options{
		"default":     {},
		"environment": {Env: env},
		"file":        {Env: env, VarFile: `v = "file"`},
		"flag":        {Env: env, VarFile: `v = "file"`, Vars: map[string]string{"v": "flag"}},
	} {
		job, err := Parse(text, o)
		require.NoError(t, err)
		require.Equal(t, want, job.Name)
	}
}
