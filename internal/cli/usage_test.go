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

// Each command's usage is cobra's, but for the line that groups say themselves, and for inherited flags, of which few are shown.
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
		want = strings.Replace(want, strings.TrimRight(c.InheritedFlags().FlagUsages(), " \n"), inherited(c), 1)
		require.Equal(t, want, printed(c.UsageFunc()), c.CommandPath())
		require.NotContains(t, c.UsageString(), c.CommandPath()+" [command]\n")
		for _, below := range c.Commands() {
			all(below)
		}
	}
	all(root)
}

func TestHelpShowsTheFlagsThatAreUsedOften(t *testing.T) {
	t.Parallel()
	root := NewRoot(&term.App{Out: io.Discard, Err: io.Discard}, Parts{})
	text := child(child(child(root, "node"), "pool"), "info").UsageString()
	_, text, _ = strings.Cut(text, "Global Flags:\n")
	require.Regexp(t, `^ +--address .*\n +--namespace .*\n +--token .*\n  8 more are shown by 'drover node -help'\n$`, text)
	require.Contains(t, child(root, "node").UsageString(), "--tls-skip-verify")
	require.NotContains(t, child(root, "fmt").UsageString(), "Global Flags")
}
