package jobspec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A function within a dynamic block is known also where one of its arguments is left to the node, which has its own variables.
func TestFunctionsWithinDynamicBlocks(t *testing.T) {
	t.Parallel()
	j, err := Parse([]byte(`job "x" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      dynamic "template" {
        for_each = ["a", "b"]
        content {
          data        = upper("${attr.kernel.name}-${template.value}")
          destination = format("local/%s", template.value)
        }
      }
    }
  }
}`), Options{})
	require.NoError(t, err)
	templates := j.TaskGroups[0].Tasks[0].Templates
	require.Len(t, templates, 2)
	require.Equal(t, "${ATTR.KERNEL.NAME}-B", templates[1].EmbeddedTmpl)
	require.Equal(t, "local/b", templates[1].DestPath)
}
