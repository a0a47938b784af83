package node

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// pools are the routes by which a node pool is written and deleted.
var pools = term.Named{Kind: "Node pool", WritePath: "/v1/node/pools", ItemPath: "/v1/node/pool/"}

//go:embed example.pool.hcl
var examplePool string

// poolCommand is "drover node pool".
func poolCommand(app *term.App) *cobra.Command {
	return term.Group("pool", "Group nodes", poolListCommand(app), poolInfoCommand(app), poolNodesCommand(app), poolJobsCommand(app),
		poolApplyCommand(app), poolInitCommand(app), pools.DeleteCommand(app, "Delete a node pool that nothing uses"))
}

// poolAnswer is a node pool as the API answers it: its duration is a number there, and a text where it is written.
type poolAnswer struct {
	drover.NodePool
	NodeIdentityTTL time.Duration
}

// poolListCommand is "drover node pool list". The built-in pools "all" and "default" are among them.
func poolListCommand(app *term.App) *cobra.Command {
	o, page := &term.Output{}, &term.Page{}
	c := term.Command(app, "list", "List node pools", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*poolAnswer]{
			Path: "/v1/node/pools", Page: page, None: "There are no node pools.", Heading: "Name|Description|Modified at",
			Row: func(p *poolAnswer) []string {
				return []string{p.Name, p.Description, strconv.FormatUint(p.ModifyIndex, 10)}
			},
		})
	})
	page.Bind(c.Flags(), `Meta.team == "ml"`)
	o.Bind(c.Flags())
	return c
}

// poolOf finds a node pool by its name or the beginning of it. Errors: NotFound; Invalid when several begin so; the API's.
func poolOf(ctx context.Context, c *api.Client, prefix string) (*poolAnswer, error) {
	var list []*poolAnswer
	if _, err := c.Get(ctx, "/v1/node/pools", url.Values{"prefix": {prefix}}, &list); err != nil {
		return nil, err
	}
	return api.Pick("node pool", prefix, list, func(p *poolAnswer) string { return p.Name },
		func(p *poolAnswer) string { return p.Description })
}

// poolInfoCommand is "drover node pool info".
func poolInfoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.NomadCommand(app, "info POOL", "Show a node pool", 1, 1, func(ctx context.Context, c *api.Client, args []string) error {
		p, err := poolOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, p); done {
			return err
		}
		ttl, algorithm, oversubscribed := "", "", ""
		if p.NodeIdentityTTL > 0 {
			ttl = p.NodeIdentityTTL.String()
		}
		if s := p.SchedulerConfiguration; s != nil {
			algorithm = s.SchedulerAlgorithm
			if s.MemoryOversubscriptionEnabled != nil {
				oversubscribed = term.YesNo(*s.MemoryOversubscriptionEnabled)
			}
		}
		return term.Facts(app.Out, "Name", p.Name, "Description", p.Description, "Identities live", ttl, "Algorithm", algorithm,
			"Memory oversubscription", oversubscribed, "Meta", term.Pairs(p.Meta), "Modified at", strconv.FormatUint(p.ModifyIndex, 10))
	})
	o.Bind(c.Flags())
	return c
}

// poolNodesCommand is "drover node pool nodes".
func poolNodesCommand(app *term.App) *cobra.Command {
	f := &StatusFlags{}
	page := &term.Page{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		p, err := poolOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		l := f.listing()
		l.Path, l.Page, l.None = pools.ItemPath+url.PathEscape(p.Name)+"/nodes", page, "There are no nodes in it."
		return term.List(ctx, app, &f.Output, l)
	}
	c := term.NomadCommand(app, "nodes POOL", "List the nodes of a pool", 1, 1, run)
	page.Bind(c.Flags(), `Status == "ready"`)
	f.Bind(c.Flags())
	return c
}

// poolJobsCommand is "drover node pool jobs", of the chosen namespace, or of all with "*".
func poolJobsCommand(app *term.App) *cobra.Command {
	o, page := &term.Output{}, &term.Page{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		p, err := poolOf(ctx, c, args[0])
		if err != nil {
			return err
		}
		return term.List(ctx, app, o, term.Listing[*drover.JobListStub]{
			Path: pools.ItemPath + url.PathEscape(p.Name) + "/jobs", Page: page,
			None: "There are no jobs in it.", Heading: "ID|Namespace|Type|Priority|Status|Submitted",
			Row: func(j *drover.JobListStub) []string {
				return []string{j.ID, j.Namespace, j.Type, strconv.Itoa(j.Priority), j.Status, term.Ago(j.SubmitTime)}
			},
		})
	}
	c := term.NomadCommand(app, "jobs POOL", "List the jobs of a pool", 1, 1, run)
	page.Bind(c.Flags(), `Type == "batch"`)
	o.Bind(c.Flags())
	return c
}

// poolFile is a node pool's specification, with Nomad's keys.
type poolFile struct {
	Pool struct {
		Name        string     `hcl:"name,label"`
		Description string     `hcl:"description,optional"`
		TTL         string     `hcl:"node_identity_ttl,optional"`
		Meta        *term.Free `hcl:"meta,block"`
		Scheduler   *struct {
			Algorithm            string `hcl:"scheduler_algorithm,optional"`
			MemoryOversubscribed *bool  `hcl:"memory_oversubscription_enabled,optional"`
		} `hcl:"scheduler_config,block"`
	} `hcl:"node_pool,block"`
}

// readPool reads a specification, or what 'node pool info -json' prints, as the API takes it. Errors: Invalid.
func readPool(text []byte, file string) (*drover.NodePool, error) {
	if term.OfAPI(text) {
		var p poolAnswer
		err := term.DecodeAPI(text, file, &p)
		if p.NodeIdentityTTL > 0 {
			p.NodePool.NodeIdentityTTL = p.NodeIdentityTTL.String()
		}
		return &p.NodePool, err
	}
	var f poolFile
	if err := term.DecodeSpec(text, file, &f); err != nil {
		return nil, err
	}
	p := &drover.NodePool{Name: f.Pool.Name, Description: f.Pool.Description, NodeIdentityTTL: f.Pool.TTL}
	if s := f.Pool.Scheduler; s != nil {
		p.SchedulerConfiguration = &drover.NodePoolSchedulerConfiguration{
			SchedulerAlgorithm: s.Algorithm, MemoryOversubscriptionEnabled: s.MemoryOversubscribed,
		}
	}
	meta, diags := f.Pool.Meta.Values(nil)
	p.Meta = meta
	return p, term.Diagnosed(diags)
}

// poolApplyCommand is "drover node pool apply". It replaces the pool as a whole: what is not given becomes empty.
func poolApplyCommand(app *term.App) *cobra.Command {
	description, meta, asJSON := "", []string(nil), false
	run := func(ctx context.Context, c *api.Client, args []string) error {
		pairs, err := term.KeyValues("-meta", meta)
		if err != nil {
			return err
		}
		p := &drover.NodePool{Name: args[0], Description: description, Meta: pairs}
		if term.IsFile(args[0]) {
			if description != "" || len(meta) > 0 {
				return drover.Errorf(drover.Invalid, "-description and -meta go with a name: a file says them itself")
			}
			text, err := app.ReadInput(ctx, args[0])
			if err != nil {
				return err
			}
			if asJSON && !strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
				return drover.Errorf(drover.Invalid, "%s is no JSON", args[0])
			}
			if p, err = readPool(text, args[0]); err != nil {
				return err
			}
		}
		if err := c.Put(ctx, pools.WritePath, nil, p, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Node pool %q was applied.\n", p.Name)
		return err
	}
	c := term.NomadCommand(app, "apply NAME|FILE|-", "Make or change a node pool", 1, 1, run)
	term.Describe(c, `
The file has the whole pool, as HCL or JSON; 'node pool init' writes an example. With a name, the pool has what -description and
-meta say. What is not given becomes empty.`, `drover node pool apply -description 'with cards' gpu
drover node pool apply gpu.pool.hcl`)
	c.Flags().StringVar(&description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata, key=value; can be repeated")
	c.Flags().BoolVar(&asJSON, "json", false, "the file is JSON (found out by itself otherwise)")
	return c
}

// poolInitCommand is "drover node pool init". It needs no agent, and refuses to overwrite a file.
func poolInitCommand(app *term.App) *cobra.Command {
	c := term.Command(app, "init [FILE]", "Write an example of a node pool's file", 0, 1,
		func(_ context.Context, app *term.App, args []string) error {
			name := "pool.nomad.hcl"
			if len(args) > 0 {
				name = args[0]
			}
			if err := term.WriteNew(name, examplePool); err != nil {
				return err
			}
			_, err := fmt.Fprintf(app.Out, "Wrote %s. Make the pool with: drover node pool apply %[1]s\n", name)
			return err
		})
	return c
}
