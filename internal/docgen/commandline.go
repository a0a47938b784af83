package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/bench"
	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/term"
)

// commandLine walks the tree of commands. What a machine sets, such as the number of its cores, stands in no default there.
func commandLine(string) (string, error) {
	root := cli.NewRoot(&term.App{Getenv: func(string) string { return "" }}, cli.Parts{Bench: bench.Commands(nil)})
	root.InitDefaultHelpCmd()
	var text strings.Builder
	fmt.Fprintf(&text, "# Command line\n\n%s\n\nExamples:\n\n```sh\n%s\n```\n\n", root.Long, trimmed(root.Example))
	index := newTable("Command", "What it does")
	walk(root, func(c *cobra.Command) {
		if c != root && !c.HasSubCommands() {
			index.row(fmt.Sprintf("[`%s`](#%s)", c.CommandPath(), anchor(c.CommandPath())), sentence(c.Short))
		}
	})
	text.WriteString(index.String() + "\n")
	remote := remoteFlags(root)
	fmt.Fprintf(&text, "## Flags of all commands that ask an agent\n\n%s\n", remote)
	walk(root, func(c *cobra.Command) {
		if c != root && !c.HasSubCommands() {
			describe(&text, c)
		}
	})
	return text.String(), nil
}

// walk visits the command and all below it, parents first. Hidden commands, and those that cobra adds by itself, are
// left out.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	visit(c)
	for _, child := range c.Commands() {
		walk(child, visit)
	}
}

// describe writes the section of one command. Flags that it inherits are not repeated: they have a section of their
// own.
func describe(text *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(text, "## %s\n\n%s\n\n```\n%s\n```\n\n", c.CommandPath(), sentence(c.Short), c.UseLine())
	if c.Long != "" {
		text.WriteString(c.Long + "\n\n")
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(text, "Also: `%s`.\n\n", strings.Join(c.Aliases, "`, `"))
	}
	if flags := flagTable(c.LocalNonPersistentFlags()); flags != "" {
		text.WriteString(flags + "\n")
	}
	if c.Example != "" {
		fmt.Fprintf(text, "```sh\n%s\n```\n\n", trimmed(c.Example))
	}
}

// remoteFlags are those that commands inherit from a parent which asks an agent.
func remoteFlags(root *cobra.Command) string {
	for _, c := range root.Commands() {
		if flags := flagTable(c.PersistentFlags()); flags != "" {
			return flags
		}
	}
	return ""
}

// flagTable returns a table of the flags; "" if none is shown. Defaults that say no more than "not given" stay empty.
func flagTable(flags *pflag.FlagSet) string {
	rows, some := newTable("Flag", "Value", "Default", "Meaning"), false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`-" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		kind, usage := pflag.UnquoteUsage(f)
		standard := f.DefValue
		if standard == "[]" || standard == "false" || standard == "0" || standard == "0s" {
			standard = ""
		}
		rows.row(name, kind, code(standard), sentence(usage))
		some = true
	})
	if !some {
		return ""
	}
	return rows.String()
}

// trimmed takes the indentation of examples away.
func trimmed(example string) string {
	lines := strings.Split(example, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

// anchor returns the fragment that GitHub gives to a heading of letters, digits, dashes and spaces.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), " ", "-")
}
