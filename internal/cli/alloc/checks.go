package alloc

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/service"
)

// checksCommand is "drover alloc checks". It asks the node, which keeps what the checks found last.
func checksCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var f chosen
	run := func(ctx context.Context, c *api.Client, args []string) error {
		v, _, err := f.allocation(ctx, c, args)
		if err != nil {
			return err
		}
		byID := map[string]*service.CheckStatus{}
		if _, err := c.Get(ctx, "/v1/client/allocation/"+v.ID+"/checks", api.InNamespace(v.Namespace), &byID); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, byID); done {
			return err
		}
		list := slices.SortedFunc(maps.Values(byID), func(x, y *service.CheckStatus) int {
			return cmp.Or(cmp.Compare(x.Service, y.Service), cmp.Compare(x.Check, y.Check), cmp.Compare(x.ID, y.ID))
		})
		var rows [][]string
		for _, s := range list {
			code := ""
			if s.StatusCode != 0 {
				code = strconv.Itoa(s.StatusCode)
			}
			rows = append(rows, []string{s.Service, s.Check, s.Task, s.Mode, s.Status, code, term.Ago(s.Timestamp * int64(time.Second)), s.Output})
		}
		return term.Table(app.Out, "The allocation has no services with checks.", "Service|Check|Task|Mode|Status|Code|Checked|Output", rows)
	}
	c := term.NomadCommand(app, "checks ALLOC", "Show what the checks of an allocation's services found last", 0, 1, run)
	term.Describe(c, "", "drover alloc checks 3f2a\ndrover alloc checks -job web")
	f.bindJob(c.Flags())
	o.Bind(c.Flags())
	return c
}
