package cli

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) namespaceCommand() *cobra.Command {
	return group("namespace", "Separate jobs from each other", a.namespaceListCommand(), a.namespaceApplyCommand(), a.namespaceDeleteCommand())
}

func (a *App) namespaceListCommand() *cobra.Command {
	o := &output{}
	c := leaf("list", "List namespaces", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var list []*drover.Namespace
		if _, err := c.get(ctx, "/v1/namespaces", nil, &list); err != nil {
			return err
		}
		if done, err := o.data(a.Out, list); done {
			return err
		}
		var rows [][]string
		for _, n := range list {
			rows = append(rows, []string{n.Name, n.Description, pairs(n.Meta)})
		}
		return table(a.Out, "There are none.", "Name|Description|Meta", rows)
	})
	o.bind(c.Flags())
	return c
}

func (a *App) namespaceApplyCommand() *cobra.Command {
	n := &drover.Namespace{}
	var meta []string
	c := leaf("apply NAME", "Make or change a namespace", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		n.Name = args[0]
		if n.Meta, err = keyValues("-meta", meta); err != nil {
			return err
		}
		if err := c.put(ctx, "/v1/namespace", nil, n, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "Namespace %q is applied.\n", n.Name)
		return err
	})
	c.Flags().StringVar(&n.Description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata, key=value; can be repeated")
	return c
}

func (a *App) namespaceDeleteCommand() *cobra.Command {
	return leaf("delete NAME", "Delete a namespace without jobs", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if _, err := c.call(ctx, "DELETE", "/v1/namespace/"+url.PathEscape(args[0]), nil, nil, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "Namespace %q is deleted.\n", args[0])
		return err
	})
}
