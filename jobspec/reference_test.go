package jobspec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the file does not know stays for the node, wherever it stands. The wanted values are those of Nomad's parser.
func TestReferencesStay(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]any{
		`"${FOO}"`:                                       "${FOO}",
		`"a ${FOO} b ${bar.baz-x} ${ SPACES }"`:          "a ${FOO} b ${bar.baz-x} ${SPACES}",
		`"$${FOO} ${FOO}"`:                               "${FOO} ${FOO}",
		`"${env["HOME"]}/${meta["a.b"]}"`:                `${env["HOME"]}/${meta["a.b"]}`,
		`"${list[0].x}"`:                                 "${list[0].x}",
		`"${upper(FOO)}-${upper("x")}"`:                  "${FOO}-X",
		`"${lower(node.X)}"`:                             "${node.x}",
		`format("%s-%s", NOMAD_ALLOC_ID, "${FOO}")`:      "${NOMAD_ALLOC_ID}-${FOO}",
		`"${format("%s-%d", node.class, var.n)}"`:        "${node.class}-3",
		`"${var.n == 3 ? FOO : "other"}"`:                "${FOO}",
		`"${meta.x == "a" ? "yes" : "no"}"`:              "no",
		`[for x in ["a", "b"] : "${x}.${FOO}"]`:          []any{"a.${FOO}", "b.${FOO}"},
		`{ for x in ["a"] : x => "${x}.${env.B}" }`:      map[string]any{"a": "a.${env.B}"},
		`"%{ if var.n == 3 }${FOO}%{ else }-%{ endif }"`: "${FOO}",
		`try("${node.x}", "never")`:                      "${node.x}",
		`"${attr.a}${attr.b.c}${attr.b.d}"`:              "${attr.a}${attr.b.c}${attr.b.d}",
		`"${attr.b.c == attr.b.d}"`:                      false,
		`[FOO.bar, "${local.l}"]`:                        []any{"${FOO.bar}", "l-${FOO}"},
		`"${join(",", [FOO, node.x, "c"])}"`:             "${FOO},${node.x},c",
		`attr.kernel.name`:                               "${attr.kernel.name}",
		`{ (node.x) = "${FOO}" }`:                        map[string]any{"${node.x}": "${FOO}"},
	} {
		text := fmt.Sprintf(`
variable "n" { default = 3 }
locals { l = "l-${FOO}" }
job "j" {
  group "g" {
    task "t" {
      config { it = %s }
    }
  }
}`, in)
		j, err := Parse([]byte(text), Options{})
		require.NoError(t, err, in)
		require.Equal(t, want, j.TaskGroups[0].Tasks[0].Config["it"], in)
	}
}

// A name of the file hides the node's, and what is in the file's is an error as before.
func TestNamesOfTheFileAreNoReferences(t *testing.T) {
	t.Parallel()
	j, err := Parse([]byte(`
job "j" {
  meta {
    shell = <<EOT
for i in $LIST; do echo "${i} $i"; done
EOT
  }
  dynamic "group" {
    for_each = ["a", "b"]
    iterator = node
    labels   = ["${node.value}-${FOO}"]
    content {
      meta { x = "${node.value} ${nodes.value}" }
    }
  }
}`), Options{})
	require.NoError(t, err)
	require.Equal(t, "for i in $LIST; do echo \"${i} $i\"; done\n", j.Meta["shell"])
	require.Equal(t, "a-${FOO}", j.TaskGroups[0].Name)
	require.Equal(t, "b ${nodes.value}", j.TaskGroups[1].Meta["x"])
}

// The identity without a name is the task's own.
func TestIdentities(t *testing.T) {
	t.Parallel()
	j, err := Parse([]byte(`
job "j" {
  group "g" {
    task "t" {
      identity { env = true }
      identity {
        name = "aws"
        file = true
      }
    }
  }
}`), Options{})
	require.NoError(t, err)
	task := j.TaskGroups[0].Tasks[0]
	require.True(t, task.Identity.Env)
	require.Len(t, task.Identities, 1)
	require.Equal(t, "aws", task.Identities[0].Name)
}
