package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/alloc"
	"github.com/drover-project/drover/internal/cli/job"
	"github.com/drover-project/drover/internal/cli/node"
	"github.com/drover-project/drover/internal/cli/ops"
	"github.com/drover-project/drover/internal/cli/term"
)

// short are the names by which Nomad's users know commands of families, too. Its "run" is not among them: ours is another command,
// which says where a job file belongs.
var short = map[string]string{
	"plan": "job plan", "validate": "job validate", "inspect": "job inspect", "init": "job init", "stop": "job stop",
	"logs": "alloc logs", "exec": "alloc exec", "fs": "alloc fs", "alloc-status": "alloc status",
	"node-status": "node status", "node-drain": "node drain", "eval-status": "eval status", "client-config": "node config",
	"server-members": "server members", "server-join": "server join", "server-force-leave": "server force-leave",
}

// shortcuts are commands of families at the top, under their short names. Help does not list them.
func shortcuts(app *term.App) (list []*cobra.Command) {
	families := map[string]*cobra.Command{
		"job": job.Command(app), "alloc": alloc.Command(app), "node": node.Command(app), "eval": ops.EvalCommand(app),
		"server": ops.ServerCommand(app),
	}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		family, of, _ := strings.Cut(short[name], " ")
		c := child(families[family], of)
		families[family].RemoveCommand(c)
		c.Use, c.Hidden = name+strings.TrimPrefix(c.Use, of), true
		list = append(list, term.Remote(app, c))
	}
	return list
}
