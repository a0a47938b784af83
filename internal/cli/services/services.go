package services

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// Command is "drover service".
func Command(app *term.App) *cobra.Command {
	return term.Group("service", "Find the services of jobs", listCommand(app), infoCommand(app), deleteCommand(app))
}

// inNamespace are the services of a namespace, as the API lists them.
type inNamespace struct {
	Namespace string
	Services  []struct {
		ServiceName string
		Tags        []string
	}
}

// listCommand is "drover service list". For programs it prints what the API answers: a list of namespaces.
func listCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		list := []inNamespace{}
		if _, err := c.Get(ctx, "/v1/services", nil, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		heading := "Service|Tags"
		if c.Namespace == "*" {
			heading = "Namespace|" + heading
		}
		var rows [][]string
		for _, n := range list {
			for _, s := range n.Services {
				row := []string{s.ServiceName, strings.Join(s.Tags, ", ")}
				if c.Namespace == "*" {
					row = append([]string{n.Namespace}, row...)
				}
				rows = append(rows, row)
			}
		}
		return term.Table(app.Out, "There are no services.", heading, rows)
	}
	c := term.NomadCommand(app, "list", "List services", 0, 0, run)
	term.Describe(c, "Lists the services of the namespace (-namespace '*': of all) that allocations serve now, with the tags of all of these.",
		"drover service list\ndrover service list -namespace '*'")
	o.Bind(c.Flags())
	return c
}

// infoCommand is "drover service info". That a service is served nowhere at the moment is no error, as in Nomad.
func infoCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	filter, choose, token := "", "", ""
	perPage := 0
	run := func(ctx context.Context, c *api.Client, args []string) error {
		q := api.Query("filter", filter, "choose", choose, "next_token", token)
		if perPage > 0 {
			q.Set("per_page", strconv.Itoa(perPage))
		}
		list := []*drover.ServiceRegistration{}
		h, err := c.Call(ctx, "GET", "/v1/service/"+url.PathEscape(args[0]), q, nil, &list)
		if err != nil {
			return err
		}
		if err := show(app, o, c.Namespace, args[0], list); err != nil {
			return err
		}
		if next := h.Get("X-Nomad-Nexttoken"); next != "" {
			fmt.Fprintf(app.Err, "There are more: -page-token %s\n", next)
		}
		return nil
	}
	c := term.NomadCommand(app, "info SERVICE", "Show where a service is found", 1, 1, run)
	term.Describe(c, "", `drover service info web
drover service info -t '{{range .}}{{.Address}}:{{.Port}} {{end}}' web
drover service info -choose '1|here' web`)
	fl := c.Flags()
	fl.StringVar(&filter, "filter", "", `only those that match this expression, such as 'Tags contains "blue"'`)
	fl.StringVar(&choose, "choose", "", "only N of them, the same ones for the same key: N|KEY")
	fl.StringVar(&token, "page-token", "", "go on after a page")
	fl.IntVar(&perPage, "per-page", 0, "so many a page; default: all")
	o.Bind(fl)
	return c
}

// show prints where a service is found. The namespace is shown if all were asked for.
func show(app *term.App, o *term.Output, namespace, name string, list []*drover.ServiceRegistration) error {
	heading := "Job|Address|Tags|Checks|Node|Allocation"
	if o.Verbose {
		heading = "ID|" + heading
	}
	if namespace == "*" {
		heading = "Namespace|" + heading
	}
	return term.Show(app, o, list, term.Listing[*drover.ServiceRegistration]{
		None: fmt.Sprintf("Nothing serves %q here.", name), Heading: heading,
		Row: func(r *drover.ServiceRegistration) []string {
			checks := "pass"
			if r.Unhealthy {
				checks = "fail"
			}
			row := []string{
				r.JobID, net.JoinHostPort(r.Address, strconv.Itoa(r.Port)), strings.Join(r.Tags, ", "), checks, o.ID(r.NodeID), o.ID(r.AllocID),
			}
			if o.Verbose {
				row = append([]string{r.ID}, row...)
			}
			if namespace == "*" {
				row = append([]string{r.Namespace}, row...)
			}
			return row
		},
	})
}

// deleteCommand is "drover service delete". A registration is there while its allocation serves it: the server says so.
func deleteCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if err := c.Delete(ctx, "/v1/service/"+url.PathEscape(args[0])+"/"+url.PathEscape(args[1]), nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintln(app.Out, "The registration was deleted.")
		return err
	}
	c := term.NomadCommand(app, "delete SERVICE ID", "Take away a registration that nothing serves", 2, 2, run)
	term.Describe(c, `The id is what 'service info -verbose' shows. What a running allocation serves is refused: stop the allocation.`, "")
	return c
}
