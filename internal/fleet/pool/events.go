package pool

import (
	"cmp"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Why a machine goes, beside the scaler's reasons.
const (
	WhyKilled     = "killed"     // by an operator
	whyUnrecorded = "unrecorded" // its intent is not in the log, and never will be
	whyUnsure     = "unsure"     // its intent may come into the log yet
)

// Restore tells the core at its start which machines the raft log has: their creates may or may not have happened.
func (c *Core) Restore(now time.Time, machines []fleet.Durable) {
	for k := range machines {
		log := &machines[k]
		if log.Of != "" && c.table[log.ID] == nil {
			c.recall(now, log)
			continue
		}
		// A machine of an unknown pool, or one that is listed twice, waits in before: adopt finds it there if the cloud
		// shows it.
		p := c.pool(log.Pool)
		if p == nil || c.table[log.ID] != nil {
			c.before[log.ID] = *log // if it was created, its tags bring it back, as an orphan
			continue
		}
		// Whether the create reached the cloud is not known, so the machine starts as ambiguous and in state creating.
		i := &fleet.Instance{QuotaUnits: 1, Ambiguous: true, Adopted: true, Durable: fleet.Durable{
			ID: log.ID, Pool: log.Pool, Provider: c.cfg.Provider, Offering: log.Offering, Template: p.current(log.Template),
			Behavior: cmp.Or(log.Behavior, fleet.BehaviorRun), PlannedAt: log.PlannedAt,
		}}
		if o := p.offering[log.Offering]; o != nil {
			sold(i, o)
		}
		restored(i, log)
		become(i, fleet.InstanceCreating, now, "restored", "its intent is in the log; whether it was created is not known yet")
		// Who led before may ask the cloud to destroy it yet, so it gets no work any more, whatever waits by now.
		if log.State == fleet.InstanceDestroying {
			become(i, fleet.InstanceDestroying, now, cmp.Or(log.Why, WhyKilled), cmp.Or(log.Reason, "it was ordered before the restart"))
		}
		c.add(i, p).unanswered = log.ProviderID == ""
	}
}

// Recorded tells that the intents of an EffectRecord are in the log, or why not.
func (c *Core) Recorded(now time.Time, eff *Effect, err error) {
	if err != nil {
		// The row of an intent that came into the log after all says that it is gone, so that no other leader asks for it.
		why := whyUnsure
		switch drover.CodeOf(err) {
		case drover.NotLeader, drover.Exhausted:
			why = whyUnrecorded
		default:
		}
		for _, in := range eff.Intents {
			if e := c.table[in.ID]; e != nil {
				c.end(now, e, why, "its intent could not be recorded: "+err.Error())
			}
		}
		c.beliefs.Unrecorded(now, err)
		return
	}
	for _, in := range eff.Intents {
		if e := c.table[in.ID]; e != nil {
			become(e.Instance, fleet.InstanceCreating, now, e.Why, e.Reason)
			e.inFlight = true
		}
	}
	c.effects = append(c.effects, Effect{Kind: EffectCreate, Request: eff.Request})
}

// Created tells how a create ended. What the cloud definitely did not make is gone, what it may have made is asked
// for again with the same key, or awaited in lists.
func (c *Core) Created(now time.Time, req *provider.Request, machines []provider.Machine, err error) {
	asked := make(map[string]bool, len(req.Intents))
	for _, in := range req.Intents {
		asked[in.ID] = true
	}
	made := make(map[string]bool, len(machines))
	for k := range machines {
		m := &machines[k]
		made[m.Intent] = true
		e := c.table[m.Intent]
		if e == nil { // given up meanwhile: the list brings it back as an orphan
			c.list.urgent = true
			continue
		}
		if !asked[e.ID] { // of the same batch: what is asked about it has an answer of its own
			if e.ProviderID == "" {
				c.confirm(now, e, m)
				e.unanswered = false
				if e.State == fleet.InstanceDestroying {
					c.callDestroy(now, e)
				}
			}
			continue
		}
		e.inFlight, e.unanswered = false, false
		c.confirm(now, e, m)
		if e.State == fleet.InstanceDestroying {
			c.callDestroy(now, e)
		}
	}
	if err == nil || provider.KindOf(err) == provider.Auth {
		c.troubled(now, "creating machines", err)
	}
	c.refused(now, req, err)
	c.beliefs.Created(now, &req.Offering, req.Tags[fleet.TagTemplate], len(machines), c.sure[req.Offering.QuotaGroup], err)
	for _, in := range req.Intents {
		e := c.table[in.ID]
		if e == nil || made[in.ID] {
			continue
		}
		e.inFlight, e.unanswered = false, false
		switch {
		case e.ProviderID == "":
			c.createFailed(now, e, err)
		case e.State == fleet.InstanceDestroying: // a list told of it meanwhile, and its destroy waited for this answer
			c.callDestroy(now, e)
		}
	}
}

// refused remembers with the machines what the cloud answered instead of making them, also where a list told of some
// of them meanwhile, and tells it: the same answer once a minute.
func (c *Core) refused(now time.Time, req *provider.Request, err error) {
	if err == nil {
		return
	}
	line := fleet.Audit{
		At: now, What: CreateFails, Why: string(provider.KindOf(err)), Reason: err.Error(), Count: len(req.Intents),
		Offering: req.Offering.Key,
	}
	for _, in := range req.Intents {
		if e := c.table[in.ID]; e != nil {
			e.LastError = "its create: " + err.Error()
			line.Pool, line.Instance = e.Pool, e.ID
			line.Several = append(line.Several, e.ID)
		}
	}
	if len(line.Several) == 1 {
		line.Several = nil
	} else {
		line.Instance = ""
	}
	if p := c.pool(line.Pool); p != nil {
		p.failed = createFailure{now, err.Error()}
	}
	if said, known := c.said[line.Reason]; known && now.Sub(said) < time.Minute {
		return
	}
	if len(c.said) > 100 {
		clear(c.said)
	}
	c.said[line.Reason] = now
	c.audit(line)
}

// createFailure is how a pool's last create that failed did.
type createFailure struct {
	at     time.Time
	reason string
}

// Failed tells how the pool's last create failed, if that was within the last ten minutes; "" if none did.
func (c *Core) Failed(now time.Time, pool string) string {
	p := c.pool(pool)
	if p == nil || p.failed.reason == "" || now.Sub(p.failed.at) > 10*time.Minute {
		return ""
	}
	return "a create failed " + now.Sub(p.failed.at).Round(time.Second).String() + " ago: " + p.failed.reason
}

// consoleKept is how much of a console is kept as evidence, in bytes.
const consoleKept = 2 << 10

// Wrote tells what a machine that did not boot had written to its console.
func (c *Core) Wrote(now time.Time, instance string, console []byte, err error) {
	e := c.table[instance]
	if e == nil {
		return
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(console[max(0, len(console)-consoleKept):]), "?"))
	switch {
	case err != nil:
		text = "its console can't be read: " + err.Error()
	case text == "":
		text = "it wrote nothing to its console"
	}
	e.LastError = "it did not boot; " + text
	c.note(now, e, "console", text)
}

// createFailed handles a machine that an answered create did not return. A definite refusal ends it. Otherwise it stays
// in creating and is asked for again, after 2 s, 4 s and so on up to a minute. A rate limit, a transient failure or an
// authorization error counts as definite only if no earlier call could have made the machine.
func (c *Core) createFailed(now time.Time, e *entry, err error) {
	kind := provider.Ambiguous
	if err != nil {
		kind = provider.KindOf(err)
	}
	unsure := kind == provider.Ambiguous || e.Ambiguous && (kind == provider.RateLimited || kind == provider.Transient ||
		kind == provider.Auth)
	if !unsure {
		c.end(now, e, "not created", err.Error())
		return
	}
	e.Ambiguous = true
	e.tries++
	e.next = now.Add(min(2*time.Second<<min(e.tries, 10), time.Minute))
	// Lists that began before the cloud can show the machine must not count as misses: the time starts with the first
	// doubt.
	if e.tries == 1 {
		e.seenAt = now
	}
	c.retry.Push(retryAt{e.next, e.ID})
	c.list.urgent = true
}

// Destroyed tells how a destroy ended.
func (c *Core) Destroyed(now time.Time, instance string, err error) {
	c.beliefs.Done(now, provider.CallDestroy, err)
	e := c.table[instance]
	if e == nil {
		return
	}
	e.inFlight = false
	if err != nil && provider.KindOf(err) == provider.NotFound && !c.agentConnected(e) {
		c.end(now, e, e.Why, "destroyed: "+e.Reason)
		return
	}
	// Where the provider's Destroy waits for the end of the machine, no list has to confirm it.
	if err == nil && c.cfg.Caps.Waits {
		c.end(now, e, e.Why, "destroyed: "+e.Reason)
		return
	}
	if err == nil && e.stopped.IsZero() {
		e.stopped = now
	}
	e.tries++
	e.next = now.Add(min(10*time.Second<<min(e.tries-1, 10), 5*time.Minute))
	c.retry.Push(retryAt{e.next, e.ID})
	c.list.urgent = true
}

// Tagged tells how a SetTags ended.
func (c *Core) Tagged(now time.Time, err error) { c.beliefs.Done(now, provider.CallTag, err) }

// Registered tells that the agent with the instance's token called home. A machine of a former cluster is ours from then on.
// Errors: NotFound; Conflict if another node showed the token before.
func (c *Core) Registered(now time.Time, instance, node string) error {
	e := c.table[instance]
	if e == nil {
		c.list.urgent = true
		return drover.Errorf(drover.NotFound, "no instance %q", instance)
	}
	if e.Of != "" {
		if e = c.inherit(now, e); e == nil {
			return drover.Errorf(drover.NotFound, "the cloud did not list instance %q yet", instance)
		}
	}
	if e.NodeID != "" && e.NodeID != node {
		return drover.Errorf(drover.Conflict, "the token of instance %s was used by node %s", instance, e.NodeID)
	}
	// A token is bound to the first node that shows it; the same node may register as often as it likes.
	e.NodeID, e.LostAt = node, time.Time{}
	c.byNode[node] = e
	switch e.State {
	case fleet.InstanceCreating, fleet.InstanceBooting:
		become(e.Instance, fleet.InstanceRegistered, now, "registered", "its agent called home")
	case fleet.InstanceOrphaned:
		if e.pool != nil {
			become(e.Instance, fleet.InstanceRegistered, now, "registered", "its agent called home")
		}
	// The node came back, after a restart for example, and must not receive work: it is drained again.
	case fleet.InstanceDraining, fleet.InstanceDestroying:
		c.effects = append(c.effects, Effect{Kind: EffectDrain, Instance: e.ID, NodeID: node, Deadline: e.InterruptAt})
	case fleet.InstancePlanned, fleet.InstanceRegistered, fleet.InstanceActive, fleet.InstanceGone:
	}
	return nil
}

// Reported tells what runs on a node.
func (c *Core) Reported(now time.Time, node string, r Report) {
	e := c.byNode[node]
	if e == nil {
		return
	}
	e.LostAt = time.Time{}
	first := e.ReadyAt.IsZero()
	if e.pool != nil && r.Used.CPU < e.Used.CPU {
		e.pool.pace.Freed(now, e.Used.Sub(r.Used))
	}
	was := e.State
	reported(e.Instance, r, now)
	if was != e.State && e.State == fleet.InstanceDraining && !r.Drained {
		c.note(now, e, "drain", e.Reason)
		c.effects = append(c.effects, Effect{Kind: EffectDrain, Instance: e.ID, NodeID: e.NodeID, Deadline: e.InterruptAt})
	}
	c.learn(e, &r)
	// The agent may hear of an interruption before the cloud's interface tells it.
	if !r.InterruptAt.IsZero() {
		c.Interrupted(now, e.ID, r.InterruptAt)
	}
	if r.Jobs != nil || r.Total != (drover.Capacity{}) {
		e.meter.Observe(now, e.Capacity, r.Jobs)
	}
	// Boot times of adopted machines are not learned: when their creates began is known only roughly.
	if first && !e.ReadyAt.IsZero() && !e.Adopted && e.pool != nil {
		if o := e.pool.offering[e.Offering]; o != nil {
			c.beliefs.Booted(o, e.Template, now.Sub(e.PlannedAt))
		}
	}
	if e.State == fleet.InstanceDraining && !r.Drained && now.Sub(e.StateAt) > 5*time.Second { // the word did not arrive
		c.effects = append(c.effects, Effect{Kind: EffectDrain, Instance: e.ID, NodeID: e.NodeID, Deadline: e.InterruptAt})
	}
	if first && e.State == fleet.InstanceActive {
		c.note(now, e, "active", e.Reason)
	}
}

// Lost tells that a node is silent, and what work control still counts on it.
func (c *Core) Lost(now time.Time, node string, work int) {
	if e := c.byNode[node]; e != nil {
		e.Work = work
		if e.LostAt.IsZero() {
			e.LostAt = now
			c.list.urgent = true // the cloud may know what became of it
		}
		if work == 0 {
			e.Used = drover.Capacity{}
			e.Quiet = e.State == fleet.InstanceDraining
		}
	}
}

// Interrupted tells that the cloud takes the instance back.
func (c *Core) Interrupted(now time.Time, instance string, at time.Time) {
	if e := c.table[instance]; e != nil && e.InterruptAt.IsZero() {
		e.InterruptAt = at
		c.note(now, e, "interrupted", "the cloud takes it back")
	}
}

// Behave sets what an operator wants of the instance. Errors: NotFound, Invalid, Conflict.
func (c *Core) Behave(now time.Time, instance string, b fleet.IdleBehavior, reason string) error {
	e := c.table[instance]
	switch {
	case e == nil:
		return drover.Errorf(drover.NotFound, "no instance %q", instance)
	case b != fleet.BehaviorRun && b != fleet.BehaviorHold && b != fleet.BehaviorDrain:
		return drover.Errorf(drover.Invalid, "behavior must be run, hold or drain, got %q", b)
	case e.State == fleet.InstanceDestroying:
		return drover.Errorf(drover.Conflict, "instance %s is being destroyed", instance)
	case e.Of != "":
		return drover.Errorf(drover.Conflict, "instance %s is of %s: it can only be killed here, once that cluster is gone", instance, e.Of)
	}
	e.Behavior = b
	c.note(now, e, string(b), reason)
	if e.State == fleet.InstanceDraining && b != fleet.BehaviorDrain && e.InterruptAt.IsZero() {
		become(e.Instance, fleet.InstanceActive, now, "demand", reason)
	}
	if e.NodeID != "" && e.State == fleet.InstanceActive && b != fleet.BehaviorDrain {
		kind := EffectUndrain
		if b == fleet.BehaviorHold {
			kind = EffectCordon
		}
		c.effects = append(c.effects, Effect{Kind: kind, Instance: e.ID, NodeID: e.NodeID})
	}
	if e.ProviderID != "" {
		c.beliefs.Started(now, provider.CallTag, 1)
		c.effects = append(c.effects, Effect{
			Kind: EffectTag, Instance: e.ID, ProviderID: e.ProviderID,
			Tags: map[string]string{fleet.TagBehavior: string(b)},
		})
	}
	return nil
}

// Kill destroys the instance now, with what runs on it. Errors: NotFound.
func (c *Core) Kill(now time.Time, instance, reason string) error {
	e := c.table[instance]
	if e == nil {
		return drover.Errorf(drover.NotFound, "no instance %q", instance)
	}
	e.killed = true
	c.note(now, e, "kill", reason)
	if e.State != fleet.InstanceDestroying {
		c.destroy(now, e, WhyKilled, reason)
	}
	return nil
}
