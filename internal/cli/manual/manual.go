package manual

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/version"
)

// Command is "drover man".
func Command(app *term.App) *cobra.Command {
	c := term.Command(app, "man [FOLDER]", "Write man pages of all commands", 0, 1, nil)
	c.RunE = func(c *cobra.Command, args []string) error {
		return write(c.Context(), app, c.Root(), args)
	}
	term.Describe(c, `
Writes drover.1, drover-job-run.1 and so on into the folder man1 in FOLDER, which is made if it is not there. Without FOLDER it is
~/.local/share/man, where man looks for pages of your own.`, "drover man && man drover-job-run\nsudo drover man /usr/local/share/man")
	return c
}

// write writes all pages. Errors: Invalid without a home folder; those of files.
func write(ctx context.Context, app *term.App, root *cobra.Command, args []string) error {
	folder := filepath.Join(cmp.Or(app.Getenv("XDG_DATA_HOME"), filepath.Join(app.Getenv("HOME"), ".local/share")), "man")
	if len(args) > 0 {
		folder = args[0]
	} else if !filepath.IsAbs(folder) {
		return drover.Errorf(drover.Invalid, "HOME names no folder: name one")
	}
	folder = filepath.Join(folder, "man1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	n := 0
	var visit func(c *cobra.Command) error
	visit = func(c *cobra.Command) error {
		if ctx.Err() != nil {
			return drover.Errorf(drover.Canceled, "%w", context.Cause(ctx))
		}
		if c.Hidden || c.Name() == "help" {
			return nil
		}
		n++
		if err := os.WriteFile(filepath.Join(folder, name(c)+".1"), []byte(page(c)), 0o644); err != nil {
			return err
		}
		for _, below := range c.Commands() {
			if err := visit(below); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(root); err != nil {
		return err
	}
	_, err := fmt.Fprintf(app.Out, "Wrote %s into %s\n", term.Plural(n, "page"), folder)
	return err
}

// name is that of a command's page.
func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// escapes are for what has a meaning in roff. A minus is one that can be copied.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// text escapes a text. A dot or an apostrophe begins a request of roff where it begins a line; letters beyond ASCII have names.
func text(s string) string {
	lines := strings.Split(escapes.Replace(s), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	var b strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// page is a command's, in roff's macros for man pages.
func page(c *cobra.Command) string {
	var b strings.Builder
	section := func(title string) { b.WriteString(".SH " + title + "\n") }
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Drover\"\n", strings.ToUpper(name(c)), "Drover "+version.Version)
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", text(name(c)), text(c.Short))
	section("SYNOPSIS")
	b.WriteString(text(c.UseLine()) + "\n")
	section("DESCRIPTION")
	for i, paragraph := range strings.Split(cmp.Or(c.Long, c.Short+"."), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(text(strings.TrimSpace(paragraph)) + "\n")
	}
	if c.HasAvailableSubCommands() {
		section("COMMANDS")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() && below.Name() != "help" {
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR(1)\n%s\n", text(name(below)), text(below.Short))
			}
		}
	}
	options(&b, "OPTIONS", c.LocalFlags())
	options(&b, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.HasExample() {
		section("EXAMPLES")
		b.WriteString(".nf\n" + text(strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n")) + "\n.fi\n")
	}
	section("SEE ALSO")
	if c.HasParent() {
		fmt.Fprintf(&b, "\\fB%s\\fR(1)\n", text(name(c.Parent())))
	} else {
		b.WriteString("https://github.com/drover\\-project/drover\n")
	}
	return b.String()
}

// options writes a section of flags, if some are shown.
func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		line := `\fB` + text("-"+f.Name) + `\fR`
		if f.Shorthand != "" {
			line += `, \fB` + text("-"+f.Shorthand) + `\fR`
		}
		if kind != "" {
			line += ` \fI` + text(kind) + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", line, text(usage))
	})
}
