package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/term"
)

// doubleDashes lets people write flags as Nomad's users do, with one dash: -dev, -config=x. It walks down the
// commands as the parser will, since only the command tells which flags take a value. What stands behind "--", and
// the words of another program, are left alone.
func doubleDashes(root *cobra.Command, args []string) []string {
	out := make([]string, 0, len(args))
	cmd, value := root, false // value: this word is the value of the flag before it
	named := false            // the word before a program's came
	for i, arg := range args {
		switch {
		case value:
			value = false
			out = append(out, arg)
			continue
		case arg == "--":
			return append(out, args[i:]...)
		case len(arg) > 1 && arg[0] == '-':
			var f *pflag.Flag
			arg, f, value = dashed(cmd, arg)
			named = named || f != nil && f.Annotations[term.StandsForFirst] != nil
			out = append(out, arg)
			continue
		}
		sub, program := child(cmd, arg), cmd.Annotations[term.PassThrough]
		switch {
		case sub != nil:
			cmd = sub
		case program == term.AfterFirst:
			return append(out, args[i:]...)
		// The parser would take the program's flags for ours, so a "--" is put before them.
		case program == term.AfterFlags && named:
			return append(append(out, "--"), args[i:]...)
		}
		named = sub == nil
		out = append(out, arg)
	}
	return out
}

// dashed writes one flag with two dashes if it has a long name. value reports whether the next word is the flag's
// value. A group of letters, such as -it, stays as it is.
func dashed(cmd *cobra.Command, arg string) (written string, flag *pflag.Flag, value bool) {
	name, _, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "" {
		return arg, nil, false // the parser says what is wrong
	}
	_ = cmd.InheritedFlags() // merges the parents' flags into the command's
	f := cmd.Flag(name)
	if f == nil && len(name) == 1 {
		f = cmd.Flags().ShorthandLookup(name)
	} else if arg[1] != '-' && (f != nil || !letters(cmd, name)) {
		arg = "-" + arg // also an unknown one, which is then named in the error
	}
	return arg, f, f != nil && f.NoOptDefVal == "" && !assigned
}

// letters reports whether the word is a group of the command's flags of one letter; what follows one that takes a value is that.
func letters(cmd *cobra.Command, word string) bool {
	for i := range len(word) {
		f := cmd.Flags().ShorthandLookup(word[i : i+1])
		if f == nil || f.NoOptDefVal == "" {
			return f != nil
		}
	}
	return true
}

// child returns the command of that name or alias directly below cmd; nil if there is none.
func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}
