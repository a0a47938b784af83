package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/fleet"
)

// environmentJob reports whether a job keeps an environment's runners.
func environmentJob(id string) bool { return strings.HasPrefix(id, execution.EnvironmentJobPrefix) }

// rolling counts a namespace's deployments.
type rolling struct{ running, stuck int }

func (d *rolling) plus(o *rolling) { d.running, d.stuck = d.running+o.running, d.stuck+o.stuck }

// String is what the area says.
func (d *rolling) String() string {
	if d.running+d.stuck == 0 {
		return "Nothing is rolled out."
	}
	return fmt.Sprintf("%s, %d without getting further.", of(d.running+d.stuck, "deployment", "deployments"), d.stuck)
}

// judgeDeployments: those that go on without moving, and the newest of jobs if it failed.
func (r *Report) judgeDeployments(s State) {
	newest := map[drover.NamespacedID]*drover.Deployment{}
	for d := range s.Deployments("*", "") {
		key := drover.NamespacedID{Namespace: d.Namespace, ID: d.JobID}
		if other := newest[key]; other == nil || other.CreateIndex < d.CreateIndex {
			newest[key] = d
		}
	}
	for key, d := range newest {
		c := cluster.Concern{
			Area: cluster.AreaDeployments, State: cluster.Weak, Subject: key.ID, Namespace: key.Namespace, Name: key.ID,
			Next: "drover deployment status " + d.ID,
		}
		if d.ModifyTime > 0 {
			c.Since = time.Unix(0, d.ModifyTime).UTC()
		}
		tally := in(r.deployments, key.Namespace)
		switch {
		case d.Status == drover.DeploymentFailed:
			if job := s.Job(key.Namespace, key.ID); job != nil && !job.Stop && job.Version == d.JobVersion {
				c.Code, c.State = cluster.DeploymentFailed, cluster.Broken
				c.Says = fmt.Sprintf("job %s: the deployment of version %d failed: %s", key.ID, d.JobVersion, d.StatusDescription)
				r.add(c)
			}
			continue
		case !d.Active():
			continue
		case d.Status == drover.DeploymentPaused:
			c.Code, c.Says = cluster.DeploymentPaused, fmt.Sprintf("job %s: the deployment of version %d is paused", key.ID, d.JobVersion)
			c.Next = "drover deployment resume " + d.ID
		case awaitsPromotion(d):
			c.Code, c.Next = cluster.DeploymentPromote, "drover deployment promote "+d.ID
			c.Says = fmt.Sprintf("job %s: the canaries of version %d are healthy and wait for promotion", key.ID, d.JobVersion)
		default:
			c.Code = cluster.DeploymentStalled
			c.Since, c.Says = r.stalled(key.ID, d)
		}
		if c.Says == "" {
			tally.running++
			continue
		}
		tally.stuck++
		r.add(c)
	}
}

// awaitsPromotion reports whether only a person keeps a deployment from going on.
func awaitsPromotion(d *drover.Deployment) bool {
	waits := false
	for _, g := range d.TaskGroups {
		if g.Unpromoted() {
			if g.AutoPromote || g.Waiting() {
				return false
			}
			waits = true
		}
	}
	return waits
}

// movesWithin is how long a deployment may make no progress before it is said to stall: half of its deadline, at most this.
const movesWithin = 2 * time.Minute

// stalled says since when a deployment that waits makes no progress, and how it stands; "" if it does.
func (r *Report) stalled(job string, d *drover.Deployment) (since time.Time, says string) {
	for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
		g := d.TaskGroups[name]
		if !g.Waiting() {
			continue
		}
		var last time.Time // the last progress
		if !g.RequireProgressBy.IsZero() && g.ProgressDeadline > 0 {
			last = g.RequireProgressBy.Add(-g.ProgressDeadline)
		}
		slow := !last.IsZero() && r.at.Sub(last) > min(movesWithin, g.ProgressDeadline/2)
		if !slow && g.UnhealthyAllocs == 0 {
			continue
		}
		says = fmt.Sprintf("job %s, group %s: version %d has %d of %d healthy, %d unhealthy", job, name, d.JobVersion, g.HealthyAllocs,
			g.DesiredTotal, g.UnhealthyAllocs)
		if !last.IsZero() {
			says += fmt.Sprintf(", no progress for %s; it fails at %s", r.ago(last), g.RequireProgressBy.UTC().Format("15:04:05"))
		}
		return last, says
	}
	return time.Time{}, ""
}

// warmth sums up a namespace's pools of runners.
type warmth struct{ environments, size, warm, claimed, waiting int }

func (w *warmth) plus(o *warmth) {
	w.environments, w.size, w.warm = w.environments+o.environments, w.size+o.size, w.warm+o.warm
	w.claimed, w.waiting = w.claimed+o.claimed, w.waiting+o.waiting
}

// String is what the area says.
func (w *warmth) String() string {
	if w.environments == 0 {
		return "No environment."
	}
	return fmt.Sprintf("%s: %d of %d runners warm, %d claimed, %s.", of(w.environments, "environment", "environments"), w.warm, w.size,
		w.claimed, of(w.waiting, "claim waits", "claims wait"))
}

// judgeEnvironments: who waits for runners, and what keeps them from coming. A pool that is being filled is well.
func (r *Report) judgeEnvironments(pools []execution.PoolStatus) {
	for i := range pools {
		p := &pools[i]
		namespace := p.Namespace
		if namespace == "" {
			namespace = drover.DefaultNamespace
		}
		in(r.environments, namespace).plus(&warmth{1, p.Size, p.Warm, p.Claimed, p.Waiting})
		c := cluster.Concern{
			Area: cluster.AreaEnvironments, State: cluster.Broken, Subject: p.Environment, Namespace: namespace, Name: p.Environment,
			Next: "drover env status -namespace " + namespace + " " + p.Environment,
		}
		why := ""
		if p.LastError != "" {
			why = ": " + p.LastError
		}
		short := p.Size - p.Warm
		switch {
		case p.Waiting > 0 && p.Warm == 0:
			c.Code, c.Count = cluster.ClaimsWait, p.Waiting
			c.Says = fmt.Sprintf("environment %s has no warm runner, and %s%s", p.Environment, of(p.Waiting, "claim waits", "claims wait"), why)
		case short > 0 && p.LastError != "" && p.Starting == 0:
			c.Code, c.Count = cluster.EnvironmentFails, short
			c.Says = fmt.Sprintf("environment %s has %d of %d runners warm%s", p.Environment, p.Warm, p.Size, why)
			if p.Warm > 0 {
				c.State = cluster.Weak
			}
		case p.Queued > 0:
			c.Code, c.State, c.Count = cluster.EnvironmentShort, cluster.Weak, p.Queued
			c.Says = fmt.Sprintf("environment %s has %d of %d runners warm, and %d without a place%s", p.Environment, p.Warm, p.Size, p.Queued, why)
		default:
			continue
		}
		r.add(c)
	}
}

// heldFor is how long a machine may be idle because somebody holds it before that is a concern.
const heldFor = time.Hour

// judgeFleet: pools that cannot buy or cost too much, and machines that cost without use.
func (r *Report) judgeFleet(pools []fleet.PoolStatus, machines []fleet.Instance) {
	var perHour, today float64
	for i := range pools {
		p := &pools[i]
		perHour, today = perHour+p.PerHour, today+p.Today
		for j := range p.Waiting {
			r.waitingAtFleet[p.Waiting[j].Class] = &p.Waiting[j]
		}
		c := cluster.Concern{
			Area: cluster.AreaFleet, State: cluster.Weak, Subject: p.Name, Name: p.Name, Next: "drover fleet pools",
		}
		if p.Problem != "" {
			c.Code, c.State, c.Says = cluster.PoolProblem, cluster.Broken, fmt.Sprintf("pool %s: its provider cannot be used: %s", p.Name, p.Problem)
			r.add(c)
			c.State = cluster.Weak
		}
		if p.Alert != "" {
			c.Code, c.Says = cluster.PoolBudget, fmt.Sprintf("pool %s: %s", p.Name, p.Alert)
			r.add(c)
		}
		if p.PauseCreates || p.PauseDestroys {
			c.Code, c.Says = cluster.PoolPaused, fmt.Sprintf("pool %s is paused (%s)", p.Name, paused(&p.Pool))
			c.Next = "drover fleet resume " + p.Name
			r.add(c)
		}
	}
	there := 0
	for i := range machines {
		m := &machines[i]
		if m.State.Terminal() {
			continue
		}
		there++
		r.judgeMachine(m)
	}
	if len(pools) == 0 && there == 0 {
		return
	}
	r.fleet = fmt.Sprintf("%s cost %s an hour, and %s today.", of(there, "machine", "machines"), fleet.Money(perHour), fleet.Money(today))
}

func paused(p *fleet.Pool) string {
	var what []string
	if p.PauseCreates {
		what = append(what, "it buys nothing")
	}
	if p.PauseDestroys {
		what = append(what, "it returns nothing")
	}
	if p.PauseReason != "" {
		what = append(what, p.PauseReason)
	}
	return strings.Join(what, "; ")
}

func (r *Report) judgeMachine(m *fleet.Instance) {
	c := cluster.Concern{
		Area: cluster.AreaFleet, State: cluster.Weak, Subject: m.ID, Name: m.ID, Since: m.StateAt, Next: "drover fleet explain " + m.ID,
	}
	costs := fmt.Sprintf("it costs %s an hour", fleet.Money(m.Price))
	switch {
	case m.State == fleet.InstanceOrphaned:
		c.Code, c.Says = cluster.MachineOrphaned, fmt.Sprintf("machine %s is ours, but of no pool that is known: %s", m.ID, costs)
	case !m.LostAt.IsZero():
		c.Code, c.Since = cluster.MachineLost, m.LostAt
		c.Says = fmt.Sprintf("the agent of machine %s is silent: %s", m.ID, costs)
	case m.LastError != "" && m.State != fleet.InstanceActive:
		c.Code, c.Says = cluster.MachineError, fmt.Sprintf("machine %s (%s): %s", m.ID, m.State, m.LastError)
	case m.Behavior == fleet.BehaviorHold && !m.IdleAt.IsZero() && r.at.Sub(m.IdleAt) > heldFor:
		c.Code, c.Since = cluster.MachineHeld, m.IdleAt
		c.Says = fmt.Sprintf("machine %s is held and idle for %s: %s", m.ID, r.ago(m.IdleAt), costs)
		c.Next = "drover fleet run " + m.ID
	default:
		return
	}
	r.add(c)
}
