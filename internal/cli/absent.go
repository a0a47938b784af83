package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// absent are commands of Nomad's for which there is nothing to be done here. Each ends with 1, as in Nomad's community edition or without
// what it is for, and says what there is in its place.
var absent = map[string]string{
	"license":              noLicense,
	"license get":          noLicense,
	"license inspect":      noLicense,
	"setup":                "there is nothing to be set up: 'drover setup consul' and 'drover setup vault' say why",
	"setup consul":         "there is nothing to be set up: Drover keeps services itself, and 'drover service list' lists them",
	"setup vault":          "there is nothing to be set up: Vault takes the identities of tasks, as docs/identities.md says",
	"alloc pause":          "tasks cannot be paused; 'drover alloc stop' ends them, 'drover deployment pause' halts a roll-out",
	"operator utilization": "no utilization is recorded, as there is no license to report it for; 'drover top' shows what is used now",
}

const noLicense = "Drover needs no license: all that it can do is in this program"

// addAbsent adds them to the root. Help does not list them.
func addAbsent(app *term.App, root *cobra.Command) {
	for _, name := range slices.Sorted(maps.Keys(absent)) { // a family comes before what is in it
		family, of, below := strings.Cut(name, " ")
		to := root
		if below {
			to, family = child(root, family), of
		}
		to.AddCommand(absentCommand(app, family, absent[name]))
	}
}

// absentCommand takes any words and flags, as Nomad's own would.
func absentCommand(app *term.App, name, says string) *cobra.Command {
	c := term.Command(app, name, "Say why there is nothing of it", 0, -1, func(context.Context, *term.App, []string) error {
		return drover.Errorf(drover.NotImplemented, "%s", says)
	})
	c.Hidden, c.FParseErrWhitelist.UnknownFlags = true, true
	return c
}
