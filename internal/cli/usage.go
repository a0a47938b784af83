package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// usage prints how a command is called, what is below it, and its flags. It is cobra's own form but for two things. The line "drover
// [command]" is missing: groups say COMMAND in their own line of usage. And it is no template (TestNothingCallsMethodsByName).
func usage(c *cobra.Command) error {
	local, inherited, below := c.LocalFlags().FlagUsages(), c.InheritedFlags().FlagUsages(), c.HasAvailableSubCommands()
	var b strings.Builder
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if len(c.Aliases) > 0 {
		b.WriteString("\n\nAliases:\n  " + c.NameAndAliases())
	}
	if c.HasExample() {
		b.WriteString("\n\nExamples:\n" + c.Example)
	}
	if below {
		b.WriteString("\n\nAvailable Commands:")
		for _, one := range c.Commands() {
			if one.IsAvailableCommand() || one.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s %s", one.NamePadding(), one.Name(), one.Short)
			}
		}
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\n\nFlags:\n" + strings.TrimRightFunc(local, unicode.IsSpace))
	}
	if c.HasAvailableInheritedFlags() {
		b.WriteString("\n\nGlobal Flags:\n" + strings.TrimRightFunc(inherited, unicode.IsSpace))
	}
	if below {
		fmt.Fprintf(&b, "\n\nUse %q for more information about a command.", c.CommandPath()+" [command] --help")
	}
	b.WriteByte('\n')
	_, err := io.WriteString(c.OutOrStderr(), b.String())
	return err
}
