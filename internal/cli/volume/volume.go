package volume

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
	"github.com/drover-project/drover/volume"
)

// Command is "drover volume".
func Command(app *term.App) *cobra.Command {
	return term.Group("volume", "Keep data on nodes",
		createCommand(app), registerCommand(app), statusCommand(app), deleteCommand(app), initCommand(app), claimCommand(app))
}

const itemPath = "/v1/volume/host/"

// find returns the volume whose id or name is, or begins with, what a person wrote.
func find(ctx context.Context, c *api.Client, wanted string) (*volume.HostVolumeStub, error) {
	q := c.Anywhere()
	q.Set("type", "host")
	q.Set("prefix", wanted)
	var list []*volume.HostVolumeStub
	if _, err := c.Get(ctx, "/v1/volumes", q, &list); err != nil {
		return nil, err
	}
	about := func(v *volume.HostVolumeStub) string {
		return v.Namespace + "  " + v.Name + "  on " + v.NodeID + "  " + v.State
	}
	switch named := withName(list, wanted); len(named) {
	case 0:
	case 1:
		return named[0], nil
	default:
		text := ""
		for _, v := range named[:min(len(named), 10)] {
			text += "\n  " + v.ID + "  " + about(v)
		}
		return nil, drover.Errorf(drover.Invalid, "%d volumes are called %q, give the id of one:%s", len(named), wanted, text)
	}
	return api.Pick("volume", wanted, list, func(v *volume.HostVolumeStub) string { return v.ID }, about)
}

func withName(list []*volume.HostVolumeStub, name string) (out []*volume.HostVolumeStub) {
	for _, v := range list {
		if v.Name == name {
			out = append(out, v)
		}
	}
	return out
}

// ignored are flags of Nomad's that change nothing here.
func ignored(c *cobra.Command) {
	c.Flags().Bool("detach", false, "accepted for Nomad's sake: the answer comes when the node has made the volume")
	c.Flags().Bool("verbose", false, "accepted for Nomad's sake: ids are printed whole")
	c.Flags().Bool("policy-override", false, "accepted for Nomad's sake: there are no such policies")
}

// createCommand is "drover volume create".
func createCommand(app *term.App) *cobra.Command {
	c := wantCommand(app, "create FILE|-", "Have a node make a volume", "create", "Created")
	term.Describe(c, `
The file is HCL or JSON, with Nomad's keys; 'volume init' writes an example. The volume goes to the node that it names, or to one that is in
its pool, meets its constraints and has its plugin. With the id of a volume that there is, in the file or by -id, what is asked of that is
changed.`, `
drover volume init
drover volume create volume.host.hcl`)
	return c
}

// registerCommand is "drover volume register".
func registerCommand(app *term.App) *cobra.Command {
	c := wantCommand(app, "register FILE|-", "Make a volume of a folder that a node has", "register", "Registered")
	term.Describe(c, `
The file is that of 'volume create', with node_id and host_path. The node checks that there is such a folder; it neither makes nor deletes
it. Whoever may do this, and mount the volume, reaches any folder of the node.`, `
drover volume register volume.host.hcl`)
	return c
}

func wantCommand(app *term.App, use, short, route, done string) *cobra.Command {
	var id string
	c := term.NomadCommand(app, use, short, 1, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := app.ReadInput(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		v, err := parse(text, args[0])
		if err != nil {
			return err
		}
		client, err := app.Nomad()
		if err != nil {
			return err
		}
		if id != "" {
			old, err := find(cmd.Context(), client, id)
			if err != nil {
				return err
			}
			v.ID, v.Namespace = old.ID, cmp.Or(v.Namespace, old.Namespace)
		}
		request := struct{ Volume *volume.HostVolume }{v}
		var answer struct{ Volume *volume.HostVolume }
		if err := client.Put(cmd.Context(), itemPath+route, nil, request, &answer); err != nil {
			return err
		}
		made := answer.Volume
		_, err = fmt.Fprintf(app.Out, "%s host volume %s with ID %s\nIt is %s, on node %s.\n", done, made.Name, made.ID, made.State, made.NodeID)
		return err
	}
	c.Flags().StringVar(&id, "id", "", "change the volume with this id, or beginning of one")
	ignored(c)
	return c
}

// statusCommand is "drover volume status".
func statusCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var kind, node, pool string
	run := func(ctx context.Context, app *term.App, args []string) error {
		if kind != "" && kind != "host" && kind != "csi" {
			return drover.Errorf(drover.Invalid, "-type: must be host or csi, got %q", kind)
		}
		if len(args) == 0 {
			return list(ctx, app, o, api.Query("type", cmp.Or(kind, "host"), "node_id", node, "node_pool", pool))
		}
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		stub, err := find(ctx, c, args[0])
		if err != nil {
			return err
		}
		var v volume.HostVolume
		if _, err := c.Get(ctx, itemPath+stub.ID, url.Values{"namespace": {stub.Namespace}}, &v); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, &v); done {
			return err
		}
		return show(app, o, &v)
	}
	c := term.Command(app, "status [ID|NAME]", "List volumes, or show one", 0, 1, run)
	c.Flags().StringVar(&kind, "type", "", "host; of csi there are none")
	c.Flags().StringVar(&node, "node", "", "only those on this node")
	c.Flags().StringVar(&pool, "node-pool", "", "only those of this node pool")
	o.Bind(c.Flags())
	return c
}

// list prints the volumes.
func list(ctx context.Context, app *term.App, o *term.Output, q url.Values) error {
	return term.List(ctx, app, o, term.Listing[*volume.HostVolumeStub]{
		Path: "/v1/volumes", Query: q, None: "No host volumes", Heading: "ID|Name|Namespace|Plugin ID|Node ID|Node Pool|State",
		Row: func(v *volume.HostVolumeStub) []string {
			return []string{o.ID(v.ID), v.Name, v.Namespace, cmp.Or(v.PluginID, "-"), o.ID(v.NodeID), v.NodePool, v.State}
		},
	})
}

// show prints a volume for people.
func show(app *term.App, o *term.Output, v *volume.HostVolume) error {
	facts := []string{
		"ID", v.ID, "Name", v.Name, "Namespace", v.Namespace, "Plugin ID", cmp.Or(v.PluginID, "-"), "Node ID", v.NodeID, "Node Pool", v.NodePool,
		"Capacity", capacity(v.CapacityBytes, "-"), "State", v.State,
	}
	if v.StateDescription != "" {
		facts = append(facts, "Description", v.StateDescription)
	}
	facts = append(facts, "Host Path", v.HostPath, "Created", term.StampNanos(v.CreateTime), "Modified", term.StampNanos(v.ModifyTime))
	if v.RequestedCapacityMinBytes > 0 || v.RequestedCapacityMaxBytes > 0 {
		facts = append(facts, "Requested",
			capacity(v.RequestedCapacityMinBytes, "0")+" to "+capacity(v.RequestedCapacityMaxBytes, "any"))
	}
	if len(v.Parameters) > 0 {
		facts = append(facts, "Parameters", term.Pairs(v.Parameters))
	}
	if err := term.Facts(app.Out, facts...); err != nil {
		return err
	}
	term.Section(app.Out, "Capabilities")
	var rows [][]string
	for _, c := range v.RequestedCapabilities {
		rows = append(rows, []string{c.AccessMode, c.AttachmentMode})
	}
	if err := term.Table(app.Out, "There are none.", "Access Mode|Attachment Mode", rows); err != nil {
		return err
	}
	term.Section(app.Out, "Allocations")
	view.SortNewestFirst(v.Allocations)
	return view.Allocations(app, o, v.Allocations)
}

// capacity writes a size.
func capacity(n int64, none string) string {
	if n == 0 {
		return none
	}
	return term.Bytes(float64(n))
}

// deleteCommand is "drover volume delete".
func deleteCommand(app *term.App) *cobra.Command {
	var force bool
	run := func(ctx context.Context, c *api.Client, args []string) error {
		v, err := find(ctx, c, args[0])
		if err != nil {
			return err
		}
		q := url.Values{"namespace": {v.Namespace}}
		if force {
			q.Set("force", "true")
		}
		if err := c.Delete(ctx, itemPath+v.ID, q, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Deleted host volume %s with ID %s\n", v.Name, v.ID)
		return err
	}
	c := term.NomadCommand(app, "delete ID|NAME", "Delete a volume with all that is in it", 1, 1, run)
	term.Describe(c, `
The node deletes the folder and all that is in it. Of a volume that was registered the folder stays. A volume that an allocation mounts is
refused, and so is one whose node is down: with -force that is forgotten, and what is on the node stays there.`, `
drover volume delete database`)
	c.Flags().BoolVar(&force, "force", false, "forget the volume, whatever becomes of what is on the node")
	c.Flags().String("type", "host", "accepted for Nomad's sake: there are host volumes only")
	return c
}

// initCommand is "drover volume init".
func initCommand(app *term.App) *cobra.Command {
	run := func(_ context.Context, app *term.App, args []string) error {
		name := "volume.host.hcl"
		if len(args) > 0 {
			name = args[0]
		}
		if err := term.WriteNew(name, example); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Wrote %s. Create the volume with: drover volume create %[1]s\n", name)
		return err
	}
	c := term.Command(app, "init [FILE]", "Write an example of a volume's file", 0, 1, run)
	c.Flags().String("type", "host", "accepted for Nomad's sake: there are host volumes only")
	return c
}
