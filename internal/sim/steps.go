package sim

import (
	"cmp"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/sim/virtual"
)

// clients is what clients know: what was acknowledged to them.
type clients struct {
	handed map[string]handed // runners that were handed out, by allocation
	held   []string          // of them, those not released yet
	acked  uint64            // the newest index that a client was told
	tokens map[string]string // jobs that were dispatched, by the token
}

// handed is a runner that was handed out: by which server, when, and under which lease. Its claimer has it until that server ended it.
type handed struct {
	by    int
	at    time.Time
	lease uint64
	claim execution.Runner
	ended bool
}

// do performs a step.
func (w *World) do(s scenario.Step) {
	w.Say("- %s %s", s.Verb, s.Args)
	o := scenario.OptionsOf(s.Args)
	name := ""
	if len(s.Args) > 0 {
		name = s.Args[0]
	}
	if w.fault(s.Verb, name, o) {
		return
	}
	asked := w.servers[0]
	if w.quorum != nil {
		asked = w.servers[w.Rng.IntN(len(w.servers))]
	}
	if asked.process.Over {
		return // connection refused
	}
	asked.process.Spawn(s.Verb, func(p *virtual.Proc) {
		p.Sleep(w.Between(0, 10*time.Millisecond))
		err := w.request(p, asked, s.Verb, name, o)
		if err != nil {
			w.Say("%s %s: %v", s.Verb, name, err)
		}
		// Every other code is an answer that clients have to expect; an internal error is a bug of ours.
		if drover.CodeOf(err) == drover.Internal && err != nil {
			w.Breach("%s %s: %v", s.Verb, name, err)
		}
	})
}

// request is a request of a client or an operator, through the use cases that the faces share.
func (w *World) request(p *virtual.Proc, s *server, verb, name string, o scenario.Options) error {
	in, ctx := s.intake, w.ctx
	var out drover.Outcome
	var err error
	switch verb {
	case drover.JobTypeService, drover.JobTypeBatch, drover.JobTypeSystem, drover.JobTypeSysBatch:
		out, err = in.RegisterJob(ctx, drover.RegisterRequest{Job: scenario.JobOf(verb, name, o)})
	case "template":
		j := scenario.JobOf(drover.JobTypeBatch, name, scenario.Options{"template": 1, "run": 5})
		out, err = in.RegisterJob(ctx, drover.RegisterRequest{Job: j})
	case "scale":
		out, err = in.ScaleJob(ctx, drover.ScaleRequest{Namespace: drover.DefaultNamespace, ID: name, Group: "g", Count: new(o["count"])})
	case "stop":
		out, err = in.DeregisterJob(ctx, drover.DeregisterRequest{Namespace: drover.DefaultNamespace, ID: name, Purge: o["purge"] > 0})
	case "evaluate":
		for j := range s.store.Snapshot().Jobs("*", "") {
			if out, err = in.EvaluateJob(ctx, j.Namespace, j.ID, true); err != nil {
				return err
			}
		}
	case "stopalloc":
		for range o["times"] {
			if id := w.anyAlloc(); id != "" {
				out, err = in.StopAllocation(ctx, id, false, false)
			}
		}
	case "gc":
		err = in.CollectGarbage(ctx)
	case "dispatch":
		err = w.dispatch(p, s, name, o)
	case "preempt":
		_, out, err = in.SetSchedulerConfig(ctx, drover.SchedulerConfiguration{PreemptionConfig: drover.PreemptionConfig{
			SystemSchedulerEnabled: true, ServiceSchedulerEnabled: w.Chance(50), BatchSchedulerEnabled: w.Chance(50),
		}}, false)
	case "env", "delenv", "claim", "release":
		out, err = w.execute(p, s, verb, name, o)
	default:
		out, err = w.operate(s, verb, name, o)
	}
	if err == nil {
		w.clients.acked = max(w.clients.acked, out.Index)
	}
	return err
}

// execute is what clients ask of the execution service.
func (w *World) execute(p *virtual.Proc, s *server, verb, name string, o scenario.Options) (out drover.Outcome, err error) {
	in, ctx := s.intake, w.ctx
	switch verb {
	case "env":
		var j *drover.Job
		if j, err = environment.ToJob(environment.Canonicalize(scenario.EnvOf(name, o)), environment.Options{}); err == nil {
			out, err = in.RegisterJob(ctx, drover.RegisterRequest{Job: j})
		}
	case "delenv":
		out, err = in.DeregisterJob(ctx, drover.DeregisterRequest{
			Namespace: drover.DefaultNamespace, ID: environment.JobOf(name).ID, Purge: true,
		})
	case "claim":
		for range o["times"] {
			w.claim(p, s, execution.ClaimRequest{
				Environment: name, IdleTimeout: time.Duration(o["idle"]) * time.Second, Wait: time.Duration(cmp.Or(o["wait"], -1)) * time.Second,
			})
			p.Sleep(w.Between(0, time.Second))
		}
	case "release":
		for range o["times"] {
			if len(w.clients.held) == 0 {
				break
			}
			w.release(p, s, w.Rng.IntN(len(w.clients.held)))
		}
	}
	return out, err
}

// operate is what operators do to nodes, or a step of the world's extra.
func (w *World) operate(s *server, verb, name string, o scenario.Options) (drover.Outcome, error) {
	in, ctx, id := s.intake, w.ctx, w.nodeNamed(name).Spec.ID
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
	return w.extra.Step(ctx, in, verb, name, o)
}

// anyAlloc returns the id of a random allocation that is not terminal; "" if there is none.
func (w *World) anyAlloc() string {
	var ids []string
	for a := range w.truth().Store().Snapshot().Allocations("*", "") {
		if !a.Terminal() {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[w.Rng.IntN(len(ids))]
}

// nodeNamed returns the node of that name, or the first one, so that a shortened scenario still runs.
func (w *World) nodeNamed(name string) *node {
	for _, n := range w.nodes {
		if n.Spec.Name == name {
			return n
		}
	}
	return w.nodes[0]
}
