package services

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/service"
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
	o, page, choose := &term.Output{}, &term.Page{}, ""
	run := func(ctx context.Context, app *term.App, args []string) error {
		l := listing(o, app.Resolved().Namespace == "*", args[0])
		l.Query, l.Page = api.Query("choose", choose), page
		return term.List(ctx, app, o, l)
	}
	c := term.Command(app, "info SERVICE", "Show where a service is found", 1, 1, run)
	term.Describe(c, "", `drover service info web
drover service info -t '{{range .}}{{.Address}}:{{.Port}} {{end}}' web
drover service info -choose '1|here' web`)
	fl := c.Flags()
	fl.StringVar(&choose, "choose", "", "only N of them, the same ones for the same key: N|KEY")
	page.Bind(fl, `Tags contains "blue"`)
	o.Bind(fl)
	return c
}

// listing is how it is shown where a service is found: with its namespace, if all were asked for.
func listing(o *term.Output, all bool, name string) term.Listing[*service.Registration] {
	heading := "Job|Address|Tags|Checks|Node|Allocation"
	if o.Verbose {
		heading = "ID|" + heading
	}
	if all {
		heading = "Namespace|" + heading
	}
	return term.Listing[*service.Registration]{
		Path: "/v1/service/" + url.PathEscape(name), None: fmt.Sprintf("Nothing serves %q here.", name), Heading: heading,
		Row: func(r *service.Registration) (row []string) {
			checks := "pass"
			if r.Unhealthy {
				checks = "fail"
			}
			if all {
				row = append(row, r.Namespace)
			}
			if o.Verbose {
				row = append(row, r.ID)
			}
			return append(row, r.JobID, net.JoinHostPort(r.Address, strconv.Itoa(r.Port)), strings.Join(r.Tags, ", "), checks,
				o.ID(r.NodeID), o.ID(r.AllocID))
		},
	}
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
