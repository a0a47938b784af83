package completion

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// shells say how a shell's script is made, and where it belongs below the home folder: below the folder that a variable of the
// environment names, or below the default of that.
var shells = map[string]struct {
	script                   func(root *cobra.Command, w io.Writer) error
	variable, standard, file string
	then                     string
}{
	"bash": {
		func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"XDG_DATA_HOME", ".local/share", "bash-completion/completions/drover",
		"It works in new shells, if bash-completion is installed.",
	},
	"zsh": {
		func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"XDG_DATA_HOME", ".local/share", "zsh/site-functions/_drover",
		"In ~/.zshrc its folder must stand in fpath: fpath=(~/.local/share/zsh/site-functions $fpath); autoload -U compinit; compinit",
	},
	"fish": {
		func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"XDG_CONFIG_HOME", ".config", "fish/completions/drover.fish",
		"It works in new shells.",
	},
}

// installCommand is "drover completion install".
func installCommand(app *term.App) *cobra.Command {
	c := term.Command(app, "install [bash|zsh|fish]", "Install completion for your shell", 0, 1, nil)
	c.RunE = func(c *cobra.Command, args []string) error {
		name := filepath.Base(app.Getenv("SHELL"))
		if len(args) > 0 {
			name = args[0]
		}
		return install(app, c.Root(), name)
	}
	c.ValidArgs = []string{"bash", "zsh", "fish"}
	term.Describe(c, `
Writes the script where the shell looks for it in your home folder; without a name it is for the shell that SHELL names. The script
asks this program, so that it stays as it is when drover is replaced. Ids of jobs, allocations, nodes and others are completed, too.`,
		"drover completion install\ndrover completion install zsh")
	return c
}

// install writes the script of a shell. Errors: Invalid for an unknown shell; those of the file.
func install(app *term.App, root *cobra.Command, name string) error {
	shell, ok := shells[name]
	if !ok {
		return drover.Errorf(drover.Invalid,
			"no completion for %q can be installed: name bash, zsh or fish; 'drover completion' makes others", name)
	}
	home := app.Getenv("HOME")
	folder := cmp.Or(app.Getenv(shell.variable), filepath.Join(home, shell.standard))
	if !filepath.IsAbs(folder) {
		return drover.Errorf(drover.Invalid, "neither HOME nor %s names a folder", shell.variable)
	}
	var script bytes.Buffer
	if err := shell.script(root, &script); err != nil {
		return err
	}
	file := filepath.Join(folder, shell.file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, script.Bytes(), 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(app.Out, "Wrote %s. %s\n", file, shell.then)
	return err
}

// Command adds "install" to what makes scripts, which cobra has.
func Command(app *term.App, root *cobra.Command, args []string) {
	root.InitDefaultCompletionCmd(args...)
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "completion" })
	if i >= 0 {
		root.Commands()[i].AddCommand(installCommand(app))
	}
}
