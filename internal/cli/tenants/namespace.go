package tenants

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/signature"
	"github.com/drover-project/drover/tenancy"
)

// namespaces are the routes by which a namespace is written and deleted.
var namespaces = term.Named{Kind: "Namespace", WritePath: "/v1/namespace", ItemPath: "/v1/namespace/"}

// NamespaceCommand is "drover namespace".
func NamespaceCommand(app *term.App) *cobra.Command {
	return term.Group("namespace", "Separate tenants from each other",
		namespaceListCommand(app), namespaceApplyCommand(app), namespaceStatusCommand(app), namespaceInspectCommand(app),
		namespaces.DeleteCommand(app, "Delete a namespace without jobs"))
}

// namespaceListCommand is "drover namespace list".
func namespaceListCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List namespaces", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		return term.List(ctx, app, o, term.Listing[*tenancy.Namespace]{
			Path: "/v1/namespaces", None: "There are no namespaces.", Heading: "Name|Description|Meta",
			Row: func(n *tenancy.Namespace) []string { return []string{n.Name, n.Description, term.Pairs(n.Meta)} },
		})
	})
	o.Bind(c.Flags())
	return c
}

// namespaceFile is a namespace's specification, with Nomad's keys.
type namespaceFile struct {
	Name           string        `hcl:"name"`
	Description    string        `hcl:"description,optional"`
	Quota          string        `hcl:"quota,optional"`
	Meta           *term.Free    `hcl:"meta,block"`
	Capabilities   *capabilities `hcl:"capabilities,block"`
	NodePools      *nodePools    `hcl:"node_pool_config,block"`
	Images         *images       `hcl:"images,block"`
	RequiredClaims *term.Free    `hcl:"required_extra_claims,block"`
	OptionalClaims *term.Free    `hcl:"optional_extra_claims,block"`
}

type images struct {
	Registries []string `hcl:"registries,optional"`
	Pin        string   `hcl:"pin,optional"`
	SignedBy   []string `hcl:"signed_by,optional"`
}

type capabilities struct {
	EnabledTaskDrivers   []string `hcl:"enabled_task_drivers,optional"`
	DisabledTaskDrivers  []string `hcl:"disabled_task_drivers,optional"`
	EnabledNetworkModes  []string `hcl:"enabled_network_modes,optional"`
	DisabledNetworkModes []string `hcl:"disabled_network_modes,optional"`
}

type nodePools struct {
	Default string   `hcl:"default,optional"`
	Allowed []string `hcl:"allowed,optional"`
	Denied  []string `hcl:"denied,optional"`
}

// readNamespace reads a specification, or what 'namespace inspect' prints. Errors: Invalid.
func readNamespace(text []byte, file string) (*tenancy.Namespace, error) {
	n := &tenancy.Namespace{}
	if term.OfAPI(text) {
		return n, term.DecodeAPI(text, file, n)
	}
	var f namespaceFile
	if err := term.DecodeSpec(text, file, &f); err != nil {
		return nil, err
	}
	n.Name, n.Description, n.Quota = f.Name, f.Description, f.Quota
	if c := f.Capabilities; c != nil {
		n.Capabilities = (*tenancy.NamespaceCapabilities)(c)
	}
	if p := f.NodePools; p != nil {
		n.NodePoolConfiguration = (*tenancy.NamespaceNodePoolConfig)(p)
	}
	if i := f.Images; i != nil {
		n.Images = (*tenancy.NamespaceImages)(i)
	}
	var all hcl.Diagnostics
	for _, read := range []struct {
		block *term.Free
		into  *map[string]string
		refs  *hcl.EvalContext
	}{{f.Meta, &n.Meta, nil}, {f.RequiredClaims, &n.RequiredExtraClaims, ownText()}, {f.OptionalClaims, &n.OptionalExtraClaims, ownText()}} {
		values, diags := read.block.Values(read.refs)
		*read.into, all = values, append(all, diags...)
	}
	return n, term.Diagnosed(all)
}

// ownText has each reference of an extra claim stand for itself, as servers replace them when they sign a token.
func ownText() *hcl.EvalContext {
	objects := map[string]map[string]cty.Value{}
	for _, ref := range claims.References() {
		root, name, _ := strings.Cut(ref, ".")
		if objects[root] == nil {
			objects[root] = map[string]cty.Value{}
		}
		objects[root][name] = cty.StringVal("${" + ref + "}")
	}
	out := &hcl.EvalContext{Variables: map[string]cty.Value{}}
	for root, names := range objects {
		out.Variables[root] = cty.ObjectVal(names)
	}
	return out
}

// namespaceApplyCommand is "drover namespace apply". A file replaces the namespace as a whole; with a name the flags change what
// they name.
func namespaceApplyCommand(app *term.App) *cobra.Command {
	var given tenancy.Namespace
	var meta []string
	c := term.NomadCommand(app, "apply NAME|FILE|-", "Make or change a namespace", 1, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		pairs, err := term.KeyValues("-meta", meta)
		if err != nil {
			return err
		}
		client, err := app.Nomad()
		if err != nil {
			return err
		}
		n, err := toApply(ctx, app, client, args[0])
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("description") {
			n.Description = given.Description
		}
		if cmd.Flags().Changed("quota") {
			n.Quota = given.Quota
		}
		if cmd.Flags().Changed("meta") {
			n.Meta = pairs
		}
		if err := client.Put(ctx, namespaces.WritePath, nil, n, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Namespace %q was applied.\n", n.Name)
		return err
	}
	term.Describe(c, `
The file has the whole namespace, as HCL or JSON: name, description, quota, meta {}, capabilities {} (enabled_task_drivers,
disabled_task_drivers, enabled_network_modes, disabled_network_modes), node_pool_config {} (default, and allowed or denied, in which
* stands for any text), required_extra_claims {} and optional_extra_claims {} (what identities of its tasks say beside, all or those that
name it) and images {} (registries; pin = "require" for images with digests only, or "resolve" for digests that are looked up
when a job is registered; signed_by, public keys of which one must have signed an image). It is also what 'namespace inspect' prints. With
a name instead, only what flags name changes.`, `
drover namespace apply -description 'the web team' web
drover namespace apply web.namespace.hcl
drover namespace inspect web | drover namespace apply -`)
	fl := c.Flags()
	fl.StringVar(&given.Description, "description", "", "what it is for")
	fl.StringVar(&given.Quota, "quota", "", "the quota that limits it; \"\" takes it off")
	fl.StringArrayVar(&meta, "meta", nil, "metadata, key=value, which replaces all; can be repeated")
	return c
}

// toApply is the namespace of a file, or the one that has the name, as it is stored. Errors: Invalid; the API's.
func toApply(ctx context.Context, app *term.App, c *api.Client, arg string) (*tenancy.Namespace, error) {
	if term.IsFile(arg) {
		text, err := app.ReadInput(ctx, arg)
		if err != nil {
			return nil, err
		}
		return readNamespace(text, arg)
	}
	n := &tenancy.Namespace{Name: arg}
	_, err := c.Get(ctx, namespaces.ItemPath+url.PathEscape(arg), nil, n)
	if err != nil && drover.CodeOf(err) != drover.NotFound {
		return nil, err
	}
	return n, nil
}

// namespaceInspectCommand is "drover namespace inspect".
func namespaceInspectCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var n tenancy.Namespace
		if _, err := c.Get(ctx, namespaces.ItemPath+url.PathEscape(args[0]), nil, &n); err != nil {
			return err
		}
		o.JSON = o.Template == ""
		_, err := o.Data(app.Out, &n)
		return err
	}
	c := term.NomadCommand(app, "inspect NAME", "Print a namespace as JSON, as 'namespace apply' reads it", 1, 1, run)
	c.Flags().StringVarP(&o.Template, "template", "t", "", "print with this Go template")
	c.Flags().Bool("json", true, "print JSON, as it does anyway")
	return c
}

// namespaceStatusCommand is "drover namespace status".
func namespaceStatusCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var n tenancy.Namespace
		if _, err := c.Get(ctx, namespaces.ItemPath+url.PathEscape(args[0]), nil, &n); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, &n); done {
			return err
		}
		return showNamespace(app, &n)
	}
	c := term.NomadCommand(app, "status NAME", "Show a namespace and what its jobs may use", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// showNamespace prints a namespace for people.
func showNamespace(app *term.App, n *tenancy.Namespace) error {
	facts := []string{"Name", n.Name, "Description", n.Description, "Quota", n.Quota}
	if c := n.Capabilities; c != nil {
		facts = append(facts,
			"Enabled Drivers", strings.Join(c.EnabledTaskDrivers, ","), "Disabled Drivers", strings.Join(c.DisabledTaskDrivers, ","),
			"Enabled Network Modes", strings.Join(c.EnabledNetworkModes, ","),
			"Disabled Network Modes", strings.Join(c.DisabledNetworkModes, ","))
	}
	if i := n.Images; i != nil {
		signers := ""
		if keys, err := signature.ParseKeys(i.SignedBy); err == nil { // the server let no others in
			signers = strings.Join(signature.IDs(keys), ",")
		}
		facts = append(facts, "Image Registries", strings.Join(i.Registries, ","), "Image Digests", i.Pin, "Image Signers", signers)
	}
	if err := term.Facts(app.Out, facts...); err != nil {
		return err
	}
	if err := showPairs(app, "Required Extra Claims", n.RequiredExtraClaims); err != nil {
		return err
	}
	if err := showPairs(app, "Optional Extra Claims", n.OptionalExtraClaims); err != nil {
		return err
	}
	if p := n.NodePoolConfiguration; p != nil {
		term.Section(app.Out, "Node Pool Configuration")
		allowed := strings.Join(p.Allowed, ",")
		if p.Allowed != nil && allowed == "" {
			allowed = "none but the default"
		}
		if err := term.Facts(app.Out, "Default", p.Default, "Allowed", allowed, "Denied", strings.Join(p.Denied, ",")); err != nil {
			return err
		}
	}
	return showPairs(app, "Metadata", n.Meta)
}

// showPairs prints names and their texts below a heading, sorted; nothing where there are none.
func showPairs(app *term.App, heading string, all map[string]string) error {
	if len(all) == 0 {
		return nil
	}
	term.Section(app.Out, heading)
	var facts []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		facts = append(facts, k, all[k])
	}
	return term.Facts(app.Out, facts...)
}
