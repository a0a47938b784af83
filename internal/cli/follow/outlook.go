package follow

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// Outlook is whether waiting can bring a driver that no node has.
type Outlook struct {
	Hopeless bool   // it cannot
	Asked    bool   // every node looked for the driver; else a node that has just started may find it yet
	Why      string // what stands against it, or who could bring it; "" = it is not known
}

// DriverOutlook asks what can become of a job whose driver no node has. It is not hopeless if a node has the driver, if only not well,
// if there is no node yet, if the fleet may buy one that has it, and if the agent does not answer these questions.
func DriverOutlook(ctx context.Context, c *api.Client, namespace, job, driver string) (o Outlook) {
	var nodes []*drover.NodeListStub
	if _, err := c.Get(ctx, "/v1/nodes", nil, &nodes); err != nil {
		return Outlook{}
	}
	o.Asked = true
	ready, have := 0, map[string]bool{}
	for _, n := range nodes {
		if n.Status != drover.NodeStatusReady {
			continue
		}
		ready++
		d := n.Drivers[driver]
		if d != nil && d.Detected {
			return Outlook{}
		}
		o.Asked = o.Asked && d != nil
		for name, d := range n.Drivers {
			have[name] = have[name] || d.Detected && d.Healthy
		}
	}
	if ready == 0 {
		return Outlook{}
	}
	maps.DeleteFunc(have, func(_ string, there bool) bool { return !there })
	brings, known := fleetOutlook(ctx, c, namespace, job)
	if brings != "" || !known {
		return Outlook{Why: brings}
	}
	o.Hopeless = true
	o.Why = fmt.Sprintf("no node has the driver %s, and no pool of the fleet brings one that does; there are %s", driver,
		cmp.Or(strings.Join(slices.Sorted(maps.Keys(have)), ", "), "none"))
	return o
}

// fleetOutlook says which pools of the fleet may buy a machine for the job, "" if none can. Known is false if that is not known.
func fleetOutlook(ctx context.Context, c *api.Client, namespace, job string) (brings string, known bool) {
	var pools []fleet.PoolStatus
	if _, err := c.Get(ctx, "/v1/fleet/pools", nil, &pools); err != nil {
		code := drover.CodeOf(err)
		return "", code == drover.NotFound || code == drover.NotImplemented // it has no fleet
	}
	var j drover.Job
	if _, err := c.Get(ctx, api.JobPath(job, ""), api.InNamespace(namespace), &j); err != nil {
		return "", false
	}
	refuse, err := refusing(ctx, c, namespace, job)
	if err != nil {
		return "", false
	}
	var may []string
	for i := range pools {
		p := &pools[i]
		if (j.NodePool == p.Policy.NodePool || j.NodePool == drover.AllNodePool) && !refuse[p.Name] {
			may = append(may, p.Name)
		}
	}
	if len(may) == 0 {
		return "", true
	}
	return "the fleet may bring a machine that has the driver (pool " + strings.Join(may, ", ") + "): 'drover fleet explain " + job +
		"' tells what it does", true
}

// refusing are the pools of the fleet that say of all the job's work that their machines cannot run it. Errors: the API's.
func refusing(ctx context.Context, c *api.Client, namespace, job string) (map[string]bool, error) {
	var waiting []fleet.Waiting
	if _, err := c.Get(ctx, "/v1/fleet/waiting", nil, &waiting); err != nil {
		return nil, err
	}
	prefix := job + "/"
	if namespace != drover.DefaultNamespace {
		prefix = namespace + "/" + prefix
	}
	pools := map[string]bool{}
	for i := range waiting {
		if w := &waiting[i]; strings.HasPrefix(w.Class, prefix) {
			pools[w.Pool] = strings.HasPrefix(w.Reason, "needs driver ") // as the scaler words it
		}
	}
	return pools, nil
}

// DriverGrace is how long a driver may be missing on nodes that say nothing of it: one that has just started may find it yet.
const DriverGrace = 3 * time.Second

// hopeful says of each group that needs a driver which no node has whether waiting can bring it: it cannot, or the fleet may. Errors:
// *term.ExitError with 4 if it cannot; Canceled.
func (f *follower) hopeful(ctx context.Context, e *drover.Evaluation) error {
	for _, group := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
		driver := e.FailedTGAllocs[group].MissingDriver()
		if driver == "" {
			continue
		}
		o := DriverOutlook(ctx, f.api, e.Namespace, e.JobID, driver)
		if o.Hopeless && !o.Asked || !o.Hopeless && o.Why != "" {
			if !clock.Sleep(ctx, f.app.Clock, DriverGrace) {
				return drover.Errorf(drover.Canceled, "interrupted; the job goes on waiting")
			}
			o = DriverOutlook(ctx, f.api, e.Namespace, e.JobID, driver)
		}
		if o.Hopeless {
			fmt.Fprintf(f.app.Out, "==> Waiting does not help group %q: %s. The job is registered, and starts when a node with the driver joins.\n",
				group, o.Why)
			return &term.ExitError{Code: term.ExitUnplaced}
		}
		if o.Why != "" {
			fmt.Fprintf(f.app.Out, "    Group %q: %s.\n", group, o.Why)
		}
	}
	return nil
}
