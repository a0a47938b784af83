package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

func (a *App) systemCommand() *cobra.Command {
	gc := leaf("gc", "Forget what ended: jobs, evaluations, allocations, nodes that are gone", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		return c.put(ctx, "/v1/system/gc", nil, nil, nil)
	})
	return group("system", "Look after the cluster's state", gc)
}

func (a *App) serverCommand() *cobra.Command {
	o := &output{}
	c := leaf("members", "List the servers", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var r struct {
			ServerRegion, ServerDC string
			Members                []struct {
				Name, Addr, Status string
				Port               uint16
				Tags               map[string]string
			}
		}
		if _, err := c.get(ctx, "/v1/agent/members", nil, &r); err != nil {
			return err
		}
		var leader string
		if _, err := c.get(ctx, "/v1/status/leader", nil, &leader); err != nil {
			leader = "" // there may be none just now; the members are there nevertheless
		}
		if done, err := o.data(a.Out, r.Members); done {
			return err
		}
		var rows [][]string
		for _, m := range r.Members {
			at := fmt.Sprintf("%s:%d", m.Addr, m.Port)
			rows = append(rows, []string{m.Name, at, m.Status, yes(at == leader || len(r.Members) == 1 && leader != ""), m.Tags["build"], m.Tags["dc"], m.Tags["region"]})
		}
		return table(a.Out, "There are none.", "Name|Address|Status|Leader|Build|Datacenter|Region", rows)
	})
	o.bind(c.Flags())
	return group("server", "Look at the servers", c)
}

func (a *App) agentInfoCommand() *cobra.Command {
	o := &output{}
	c := leaf("agent-info", "Show who the agent is and how it does", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var r struct {
			Config map[string]any               `json:"config"`
			Member map[string]any               `json:"member"`
			Stats  map[string]map[string]string `json:"stats"`
		}
		if _, err := c.get(ctx, "/v1/agent/self", nil, &r); err != nil {
			return err
		}
		if done, err := o.data(a.Out, r); done {
			return err
		}
		for _, part := range slices.Sorted(maps.Keys(r.Stats)) {
			fmt.Fprintln(a.Out, part)
			for _, k := range slices.Sorted(maps.Keys(r.Stats[part])) {
				fmt.Fprintf(a.Out, "  %s = %s\n", k, line(r.Stats[part][k]))
			}
		}
		return nil
	})
	o.bind(c.Flags())
	return c
}
