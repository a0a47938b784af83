package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// clients is what clients know: what was acknowledged to them.
type clients struct {
	handed map[string]bool // allocations of runners that were handed out
	held   []string        // of them, those not released yet
	acked  uint64          // the newest index that a client was told
}

// do performs a step.
func (w *World) do(s Step) {
	w.say("- %s %s", s.Verb, s.Args)
	o := optionsOf(s.Args)
	name := ""
	if len(s.Args) > 0 {
		name = s.Args[0]
	}
	if w.fault(s.Verb, name, o) {
		return
	}
	if w.server.process.over {
		return // connection refused
	}
	w.server.process.spawn(s.Verb, func(p *proc) {
		p.sleep(w.between(0, 10*time.Millisecond))
		err := w.request(p, s.Verb, name, o)
		if err != nil {
			w.say("%s %s: %v", s.Verb, name, err)
		}
		// Every other code is an answer that clients have to expect; an internal error is a bug of ours.
		if drover.CodeOf(err) == drover.Internal && err != nil {
			w.breach("%s %s: %v", s.Verb, name, err)
		}
	})
}

// request is a request of a client or an operator, through the use cases that the faces share.
func (w *World) request(p *proc, verb, name string, o options) error {
	in, ctx := w.server.intake, w.ctx
	var out drover.Outcome
	var err error
	switch verb {
	case drover.JobTypeService, drover.JobTypeBatch, drover.JobTypeSystem, drover.JobTypeSysBatch:
		out, err = in.RegisterJob(ctx, drover.RegisterRequest{Job: jobOf(verb, name, o)})
	case "scale":
		out, err = in.ScaleJob(ctx, drover.ScaleRequest{Namespace: drover.DefaultNamespace, ID: name, Group: "g", Count: new(o["count"])})
	case "stop":
		out, err = in.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: drover.DefaultNamespace, ID: name, Purge: o["purge"] > 0})
	case "evaluate":
		for j := range w.server.store.Snapshot().Jobs("*", "") {
			if out, err = in.EvaluateJob(ctx, j.Namespace, j.ID, true); err != nil {
				return err
			}
		}
	case "env":
		var j *drover.Job
		if j, err = environment.ToJob(environment.Canonicalize(envOf(name, o)), environment.Options{}); err == nil {
			out, err = in.RegisterJob(ctx, drover.RegisterRequest{Job: j})
		}
	case "delenv":
		out, err = in.DeregisterJob(ctx, drover.DeregisterRequest{
			Namespace: environment.Namespace, ID: environment.JobID(name), Purge: true,
		})
	case "claim":
		for range o["times"] {
			w.claim(p, execution.ClaimRequest{
				Environment: name, IdleTimeout: time.Duration(o["idle"]) * time.Second, Wait: time.Duration(cmp.Or(o["wait"], -1)) * time.Second,
			})
			p.sleep(w.between(0, time.Second))
		}
	case "release":
		for range min(o["times"], len(w.clients.held)) {
			w.release(p, w.rng.IntN(len(w.clients.held)))
		}
	case "stopalloc":
		for range o["times"] {
			if id := w.anyAlloc(); id != "" {
				out, err = in.StopAllocation(ctx, id, false, false)
			}
		}
	case "gc":
		err = in.CollectGarbage(ctx)
	case "preempt":
		_, out, err = in.SetSchedulerConfig(ctx, drover.SchedulerConfiguration{PreemptionConfig: drover.PreemptionConfig{
			SystemSchedulerEnabled: true, ServiceSchedulerEnabled: w.chance(50), BatchSchedulerEnabled: w.chance(50),
		}}, false)
	default:
		out, err = w.operate(verb, w.nodeNamed(name), o)
	}
	if err == nil {
		w.clients.acked = max(w.clients.acked, out.Index)
	}
	return err
}

// operate is what operators do to nodes.
func (w *World) operate(verb string, n *node, o options) (drover.Outcome, error) {
	in, ctx, id := w.server.intake, w.ctx, n.spec.ID
	switch verb {
	case "drain":
		spec := &drover.DrainSpec{Deadline: time.Duration(o["deadline"]) * time.Second}
		return in.DrainNode(ctx, drover.DrainRequest{NodeID: id, Spec: spec})
	case "undrain":
		return in.DrainNode(ctx, drover.DrainRequest{NodeID: id, MarkEligible: true})
	case "ineligible":
		return in.SetEligibility(ctx, id, drover.NodeIneligible)
	case "eligible":
		return in.SetEligibility(ctx, id, drover.NodeEligible)
	case "purgenode":
		return in.PurgeNode(ctx, id)
	}
	return drover.Outcome{}, drover.Errorf(drover.Internal, "no such step: %s", verb)
}

// claim claims a runner as a client does, and checks that nobody got the same one before. Failures are only logged: an
// empty pool or a server that starts is no breach.
func (w *World) claim(p *proc, req execution.ClaimRequest) {
	r, err := w.server.runners.claim(p, req)
	if err != nil {
		w.say("claim of %s: %v", req.Environment, err)
		return
	}
	w.say("claim of %s: runner %s", req.Environment, short(r.AllocID))
	if w.clients.handed[r.AllocID] {
		w.breach("runner %s was handed out twice", r.AllocID)
	}
	w.clients.handed[r.AllocID] = true
	w.clients.held = append(w.clients.held, r.ID)
	w.pass(p, answered)
}

// release gives a runner back. While it lives it is its claimer's, whatever happened to the server.
func (w *World) release(p *proc, i int) {
	id := w.clients.held[i]
	w.clients.held = slices.Delete(w.clients.held, i, i+1)
	err := w.server.runners.release(p, id)
	if drover.CodeOf(err) != drover.NotFound {
		return
	}
	a := w.server.store.Snapshot().Allocation(id[len(id)-36:])
	if env, _, _ := strings.Cut(id, "-"); a != nil && !a.Terminal() && w.server.runners.core.Knows(env) {
		w.breach("runner %s was handed out, lives, and is not known", id)
	}
}

// anyAlloc returns the id of a random allocation that is not terminal; "" if there is none.
func (w *World) anyAlloc() string {
	var ids []string
	for a := range w.server.store.Snapshot().Allocations("*", "") {
		if !a.Terminal() {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[w.rng.IntN(len(ids))]
}

// nodeNamed returns the node of that name, or the first one, so that a shortened scenario still runs.
func (w *World) nodeNamed(name string) *node {
	for _, n := range w.nodes {
		if n.spec.Name == name {
			return n
		}
	}
	return w.nodes[0]
}

// fault performs bad luck; it reports whether the verb is one. Faults with a duration end by themselves.
func (w *World) fault(verb, arg string, o options) bool {
	d, _ := time.ParseDuration(arg) // of the server's faults
	switch verb {
	case "snapshot":
		if !w.server.process.over {
			w.server.compact()
		}
	case "crash":
		w.crash()
		w.after(d, "boot", w.recover)
	case "trap":
		w.trap = trap{point: trapPoint(o["point"]), down: d}
	case "lose":
		w.server.loseLeadership()
		w.after(d, "elected", w.recover)
	case "logfull":
		w.full = true
		w.after(d, "room", func() { w.full = false })
	case "lossy":
		w.lossy = true
		w.after(d, "lossless", func() { w.lossy = false })
	case "stuck":
		w.stuck = true
		w.after(d, "unstuck", func() { w.stuck = false })
	default:
		return w.nodeFault(verb, arg, o)
	}
	return true
}

// nodeFault performs bad luck of one node, and reports whether the verb names any. Option "for" is how long it lasts,
// in seconds. Agents that were killed come back after that time, unless something else started them.
func (w *World) nodeFault(verb, name string, o options) bool {
	n := w.nodeNamed(name)
	d := time.Duration(o["for"]) * time.Second
	switch verb {
	case "kill":
		n.kill()
	case "reboot", "wipe":
		n.reboot(verb == "wipe")
	case "cut":
		n.cut = true
		w.after(d, "joined", func() { n.cut = false })
		return true
	case "slow":
		n.slow = true
		w.after(d, "fast", func() { n.slow = false })
		return true
	case "full":
		n.full = true
		w.after(d, "empty", func() { n.full = false })
		return true
	case "skew":
		n.skew = time.Duration(o["seconds"]) * time.Second
		return true
	case "oom":
		n.oom()
		return true
	default:
		return false
	}
	// Only faults that end the agent get here.
	w.after(d, "back", func() {
		if !n.up() {
			n.start()
		}
	})
	return true
}

// oom kills something that runs.
func (n *node) oom() {
	keys := slices.Sorted(maps.Keys(n.runs))
	if len(keys) > 0 {
		n.runs[keys[n.w.rng.IntN(len(keys))]].end(oomExit)
	}
}

// recover brings the server back, or elects it.
func (w *World) recover() {
	switch {
	case w.server.process.over:
		w.boot()
	case !w.server.accepts:
		w.server.lead()
	}
}

// heal ends all faults. Tasks do not fail any more either.
func (w *World) heal() {
	w.say("the faults are over")
	w.quiet, w.lossy, w.full, w.stuck = true, false, false, false
	w.recover()
	for _, n := range w.nodes {
		n.cut, n.slow, n.full = false, false, false
		if !n.up() {
			n.start()
		}
	}
}
