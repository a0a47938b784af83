package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage prints how a command is called, what is below it, and its flags. It is cobra's own form but for three things. The line "drover
// [command]" is missing: groups say COMMAND in their own line of usage. Of the flags that all commands have it shows few. And it is no
// template (TestNothingCallsMethodsByName).
func usage(c *cobra.Command) error {
	local, below := c.LocalFlags().FlagUsages(), c.HasAvailableSubCommands()
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
		b.WriteString("\n\nGlobal Flags:\n" + inherited(c))
	}
	if below {
		fmt.Fprintf(&b, "\n\nUse %q for more information about a command.", c.CommandPath()+" [command] --help")
	}
	b.WriteByte('\n')
	_, err := io.WriteString(c.OutOrStderr(), b.String())
	return err
}

// often are the inherited flags that help shows. The others are for regions and TLS, and would be half of each page.
var often = []string{"address", "namespace", "token"}

// inherited lists the flags that are used often, and says where the others are.
func inherited(c *cobra.Command) string {
	some, others := pflag.NewFlagSet("", pflag.ContinueOnError), 0
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case slices.Contains(often, f.Name):
			some.AddFlag(f)
		case !f.Hidden:
			others++
		}
	})
	text := strings.TrimRightFunc(some.FlagUsages(), unicode.IsSpace)
	if others > 0 {
		family := c
		for family.HasParent() && family.Parent().HasParent() {
			family = family.Parent()
		}
		text += fmt.Sprintf("\n  %d more are shown by '%s -help'", others, family.CommandPath())
	}
	return text
}
