package cli

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// uiCommand is "drover ui". browse shows an address; nil: by what the system has for that.
func uiCommand(app *term.App, browse func(ctx context.Context, address string) error) *cobra.Command {
	var show bool
	if browse == nil {
		browse = openPage
	}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		path, q := "/ui/", url.Values{}
		if app.Resolved().Socket() != "" {
			return drover.Errorf(drover.Invalid, "browsers do not open sockets: give the agent's http:// or https:// address with -address")
		}
		if len(args) > 0 {
			var err error
			if path, q, err = pageOf(ctx, c, args[0]); err != nil {
				return err
			}
		}
		at := *c
		at.Region = "" // the page is that of the agent
		address := at.Url(path, q)
		if _, err := fmt.Fprintln(app.Out, address); err != nil || show {
			return err
		}
		if err := browse(ctx, address); err != nil {
			return fmt.Errorf("no browser could be opened (%w): open the address in one", err)
		}
		return nil
	}
	c := term.NomadCommand(app, "ui [ID]", "Open the web page of the agent", 0, 1, run)
	term.Describe(c, "With an id, it opens the page of the job, allocation or node whose id begins so.", `drover ui
drover ui -show-url web`)
	c.Flags().BoolVar(&show, "show-url", false, "print the address only")
	return c
}

// pageOf finds the page of a job, allocation or node. Errors: NotFound; Invalid when several begin so; the API's.
func pageOf(ctx context.Context, c *api.Client, prefix string) (path string, q url.Values, err error) {
	kind, id, err := find(ctx, c, prefix, []string{"jobs", "allocs", "nodes"})
	if err != nil {
		return "", nil, err
	}
	switch kind {
	case "allocs":
		return "/ui/allocations/" + id, nil, nil
	case "nodes":
		return "/ui/clients/" + id, nil, nil
	}
	j, err := c.Job(ctx, id)
	if err != nil {
		return "", nil, err
	}
	return "/ui/jobs/" + url.PathEscape(j.ID), api.InNamespace(j.Namespace), nil
}

// openPage has the system open an address in the user's browser.
func openPage(ctx context.Context, address string) error {
	words := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		words[0] = "open"
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	return exec.CommandContext(ctx, words[0], words[1:]...).Run()
}
