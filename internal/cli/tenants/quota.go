package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/tenancy"
)

// quotas are the routes by which a quota is written and deleted.
var quotas = term.Named{Kind: "Quota", WritePath: "/v1/quota", ItemPath: "/v1/quota/"}

// QuotaCommand is "drover quota".
func QuotaCommand(app *term.App) *cobra.Command {
	return term.Group("quota", "Limit how much namespaces use together",
		quotaListCommand(app), quotaApplyCommand(app), quotaStatusCommand(app), quotaInspectCommand(app), quotaInitCommand(app),
		quotas.DeleteCommand(app, "Delete a quota that no namespace refers to"))
}

// quotaListCommand is "drover quota list".
func quotaListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List quotas", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*tenancy.QuotaSpec]{
			Path: "/v1/quotas", None: "There are no quotas.", Heading: "Name|Description",
			Row: func(q *tenancy.QuotaSpec) []string { return []string{q.Name, q.Description} },
		})
	})
	o.Bind(c.Flags())
	return c
}

// quotaApplyCommand is "drover quota apply".
func quotaApplyCommand(app *term.App) *cobra.Command {
	c := term.NomadCommand(app, "apply FILE|-", "Make or change a quota", 1, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := app.ReadInput(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		q, err := readQuota(text, args[0])
		if err != nil {
			return err
		}
		client, err := app.Nomad()
		if err != nil {
			return err
		}
		if err := client.Put(cmd.Context(), quotas.WritePath, nil, q, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Quota %q was applied.\n", q.Name)
		return err
	}
	c.Flags().Bool("json", false, "accepted for Nomad's sake: JSON is told from HCL by itself")
	term.Describe(c, `
The file has the whole quota, as HCL or JSON: name, description and a limit {} for each region with region_limit {}, as
'quota init' writes an example. It is also what 'quota inspect' prints. Of a limit 0 is none, and below 0 nothing may be used.`, `
drover quota init
drover quota apply quota.hcl
drover namespace apply -quota example web
drover quota status example`)
	return c
}

// quotaInitCommand is "drover quota init".
func quotaInitCommand(app *term.App) *cobra.Command {
	var asJSON bool
	run := func(_ context.Context, app *term.App, args []string) error {
		file, text := "quota.hcl", exampleQuota
		if asJSON {
			q, err := readQuota([]byte(text), file)
			if err != nil {
				return err
			}
			data, err := json.MarshalIndent(q, "", "  ")
			if err != nil {
				return err
			}
			file, text = "quota.json", string(data)+"\n"
		}
		if len(args) > 0 {
			file = args[0]
		}
		if err := term.WriteNew(file, text); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Wrote %s. Apply it with: drover quota apply %[1]s\n", file)
		return err
	}
	c := term.Command(app, "init [FILE]", "Write an example of a quota's file", 0, 1, run)
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// quotaInspectCommand is "drover quota inspect".
func quotaInspectCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var q tenancy.QuotaSpec
		if _, err := c.Get(ctx, quotas.ItemPath+url.PathEscape(args[0]), nil, &q); err != nil {
			return err
		}
		o.JSON = o.Template == ""
		_, err := o.Data(app.Out, &q)
		return err
	}
	c := term.NomadCommand(app, "inspect NAME", "Print a quota as JSON, as 'quota apply' reads it", 1, 1, run)
	c.Flags().StringVarP(&o.Template, "template", "t", "", "print with this Go template")
	c.Flags().Bool("json", true, "print JSON, as it does anyway")
	return c
}

// quotaStatusCommand is "drover quota status".
func quotaStatusCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var q tenancy.QuotaSpec
		if _, err := c.Get(ctx, quotas.ItemPath+url.PathEscape(args[0]), nil, &q); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, &q); done {
			return err
		}
		var u tenancy.QuotaUsage
		if _, err := c.Get(ctx, "/v1/quota-usage/"+url.PathEscape(args[0]), nil, &u); err != nil {
			return err
		}
		return showQuota(app, &q, &u)
	}
	c := term.NomadCommand(app, "status NAME", "Show a quota and what is used of it in this region", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// showQuota prints a quota for people, with what its namespaces use.
func showQuota(app *term.App, q *tenancy.QuotaSpec, u *tenancy.QuotaUsage) error {
	limits := make([]string, len(q.Limits))
	for i, l := range q.Limits {
		limits[i] = l.Region
	}
	if err := term.Facts(app.Out, "Name", q.Name, "Description", q.Description, "Limits", strconv.Itoa(len(limits))); err != nil {
		return err
	}
	for _, l := range q.Limits {
		term.Section(app.Out, fmt.Sprintf("Region %q", l.Region))
		var used *tenancy.QuotaLimit
		for _, at := range slices.Sorted(maps.Keys(u.Used)) {
			if u.Used[at].Region == l.Region {
				used = u.Used[at]
			}
		}
		if err := term.Table(app.Out, "Nothing is limited.", "Resource|Used|Limit", quotaRows(l, used)); err != nil {
			return err
		}
	}
	return nil
}

// quotaRows has a row for each limit; used is nil for another region than the one that was asked.
func quotaRows(l, used *tenancy.QuotaLimit) (rows [][]string) {
	of := &tenancy.QuotaResources{}
	if used != nil && used.RegionLimit != nil {
		of = used.RegionLimit
	}
	limits := l.RegionLimit
	if limits == nil {
		limits = &tenancy.QuotaResources{}
	}
	rows = resourceRows("", quotaPart{limits.CPU, limits.Cores, limits.MemoryMB, limits.MemoryMaxMB, limits.Allocations, limits.Devices},
		quotaPart{of.CPU, of.Cores, of.MemoryMB, of.MemoryMaxMB, of.Allocations, of.Devices})
	rows = quotaRow(rows, "Claimed runners", limits.Runners, of.Runners)
	rows = quotaRow(rows, "Executions", limits.Executions, of.Executions)
	rows = quotaRow(rows, "Execution CPU (s today)", limits.ExecutionCPUSeconds, of.ExecutionCPUSeconds)
	rows = quotaRow(rows, "Execution output (MB today)", limits.ExecutionMB, of.ExecutionMB)
	if budget, spent := limits.FleetPerDay, of.FleetPerDay; budget != nil && *budget != 0 || spent != nil && *spent != 0 {
		rows = append(rows, []string{"Machines (cost today)", moneyOf(spent, "-"), moneyOf(budget, "none")})
	}
	variables := l.VariablesLimit
	if limits.Storage != nil && limits.Storage.VariablesMB != 0 {
		variables = &limits.Storage.VariablesMB
	}
	var stored *int
	if of.Storage != nil {
		stored = &of.Storage.VariablesMB
	}
	rows = quotaRow(rows, "Variables (MB)", variables, stored)
	for i, p := range limits.NodePools {
		in := &tenancy.QuotaNodePool{}
		if i < len(of.NodePools) {
			in = of.NodePools[i]
		}
		rows = append(rows, resourceRows("Node pool "+p.NodePool+": ",
			quotaPart{p.CPU, p.Cores, p.MemoryMB, p.MemoryMaxMB, p.Allocations, p.Devices},
			quotaPart{in.CPU, in.Cores, in.MemoryMB, in.MemoryMaxMB, in.Allocations, in.Devices})...)
	}
	return rows
}

// moneyOf writes an amount: of a limit, below 0 is nothing and 0 none.
func moneyOf(v *float64, without string) string {
	if v == nil || *v == 0 && without == "none" {
		return without
	}
	return fleet.Money(max(*v, 0))
}

// quotaPart is what regions and node pools have in common.
type quotaPart struct {
	cpu, cores, memory, memoryMax, allocations *int
	devices                                    []*tenancy.QuotaDevice
}

func resourceRows(where string, limit, used quotaPart) (rows [][]string) {
	rows = quotaRow(rows, where+"CPU (MHz)", limit.cpu, used.cpu)
	rows = quotaRow(rows, where+"Cores", limit.cores, used.cores)
	rows = quotaRow(rows, where+"Memory (MB)", limit.memory, used.memory)
	rows = quotaRow(rows, where+"Memory Max (MB)", limit.memoryMax, used.memoryMax)
	rows = quotaRow(rows, where+"Allocations", limit.allocations, used.allocations)
	for i, d := range limit.devices {
		n, most := (*int)(nil), -1 // none
		if d.Count != nil && *d.Count > 0 {
			most = int(*d.Count)
		}
		if i < len(used.devices) && used.devices[i].Count != nil {
			n = new(int(*used.devices[i].Count))
		}
		rows = quotaRow(rows, where+"Device "+d.Name, &most, n)
	}
	return rows
}

// quotaRow appends a row for what is limited or used.
func quotaRow(rows [][]string, what string, limit, used *int) [][]string {
	limited := limit != nil && *limit != 0
	if !limited && (used == nil || *used == 0) {
		return rows
	}
	row := []string{what, "-", "none"}
	if used != nil {
		row[1] = strconv.Itoa(*used)
	}
	if limited {
		row[2] = strconv.Itoa(max(*limit, 0))
	}
	return append(rows, row)
}
