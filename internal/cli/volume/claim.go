package volume

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/volume"
)

const claimsPath = "/v1/volumes/claims"

// claimCommand is "drover volume claim".
func claimCommand(app *term.App) *cobra.Command {
	return term.Group("claim", "Which volumes allocations with sticky ones keep", claimListCommand(app), claimDeleteCommand(app))
}

// claimListCommand is "drover volume claim list".
func claimListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var job, group, name string
	run := func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*volume.HostVolumeClaim]{
			Path: claimsPath, Query: api.Query("job_id", job, "task_group", group, "volume_name", name),
			None: "No volume claims", Heading: "ID|Namespace|Job ID|Task Group|Allocation|Allocation ID|Volume Name|Volume ID",
			Row: func(c *volume.HostVolumeClaim) []string {
				return []string{
					o.ID(c.ID), c.Namespace, c.JobID, c.TaskGroupName, c.AllocName, o.ID(c.AllocID), c.VolumeName, o.ID(c.VolumeID),
				}
			},
		})
	}
	c := term.Command(app, "list", "List claims of volumes", 0, 0, run)
	term.Describe(c, `
An allocation of a group with a sticky volume claims the volume that it gets, and whatever replaces the allocation has the same one.`, `
drover volume claim list -job db`)
	c.Flags().StringVar(&job, "job", "", "only those of this job")
	c.Flags().StringVar(&group, "group", "", "only those of groups with this name")
	c.Flags().StringVar(&name, "volume-name", "", "only those of volumes with this name")
	o.Bind(c.Flags())
	return c
}

// claimDeleteCommand is "drover volume claim delete".
func claimDeleteCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *api.Client, args []string) error {
		q := c.Anywhere()
		q.Set("prefix", args[0])
		var list []*volume.HostVolumeClaim
		if _, err := c.Get(ctx, claimsPath, q, &list); err != nil {
			return err
		}
		claim, err := api.Pick("volume claim", args[0], list, func(c *volume.HostVolumeClaim) string { return c.ID },
			func(c *volume.HostVolumeClaim) string { return c.Namespace + "  " + c.AllocName + "  " + c.VolumeName })
		if err != nil {
			return err
		}
		if err := c.Delete(ctx, "/v1/volumes/claim/"+claim.ID, url.Values{"namespace": {claim.Namespace}}, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Deleted volume claim %s: what replaces %s goes to any volume %s\n",
			claim.ID, claim.AllocName, claim.VolumeName)
		return err
	}
	c := term.NomadCommand(app, "delete ID", "Have an allocation's replacement get another volume", 1, 1, run)
	term.Describe(c, `
The volume and what is in it stay. It takes the capability host-volume-write. What runs goes on; where a job waits because the volume of
one of its allocations is lost, that is placed anew.`, `
drover volume claim delete 3b5c9d20`)
	c.Flags().Bool("y", false, "accepted for Nomad's sake: nothing is asked")
	c.Flags().Bool("verbose", false, "accepted for Nomad's sake: ids are printed whole")
	return c
}
