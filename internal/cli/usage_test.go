package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
)

// Each command's usage is cobra's, but for the line that groups say themselves.
func TestUsageIsCobras(t *testing.T) {
	t.Parallel()
	root := NewRoot(&term.App{Out: io.Discard, Err: io.Discard}, Parts{})
	cobras := (&cobra.Command{}).UsageFunc()
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		printed := func(how func(*cobra.Command) error) string {
			var b bytes.Buffer
			c.SetOut(&b)
			require.NoError(t, how(c))
			return b.String()
		}
		want := printed(cobras)
		want = strings.Replace(want, "\n  "+c.CommandPath()+" [command]", "", 1)
		require.Equal(t, want, printed(c.UsageFunc()), c.CommandPath())
		require.NotContains(t, c.UsageString(), c.CommandPath()+" [command]\n")
		for _, below := range c.Commands() {
			all(below)
		}
	}
	all(root)
}
