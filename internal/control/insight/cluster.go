package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
)

// judgeServers: who is unhealthy, and whether one more failure is one too many.
func (r *Report) judgeServers(s Servers) {
	healthy, voters := 0, 0
	for _, one := range s.List {
		if one.Voter {
			voters++
		}
		if one.Healthy {
			healthy++
			continue
		}
		state := cluster.Weak
		if len(s.List) == 1 {
			state = cluster.Broken
		}
		r.add(cluster.Concern{
			Code: cluster.ServerUnhealthy, Area: cluster.AreaServers, State: state, Subject: one.ID, Name: one.Name, Since: one.Since,
			Says: fmt.Sprintf("server %s is unhealthy (%s)", one.Name, cmp.Or(one.Status, "gossip knows nothing of it")),
			Next: "drover doctor -cluster",
		})
	}
	switch {
	case len(s.List) == 0:
		r.servers = "No server was judged yet: the leader is new."
	case voters == 1:
		r.servers = fmt.Sprintf("%d of %s healthy; one votes, so nothing is written while it is down.", healthy, of(len(s.List), "server",
			"servers"))
	default:
		r.servers = fmt.Sprintf("%d of %d servers healthy; %d may fail at once.", healthy, len(s.List), s.Tolerance)
	}
	if voters > 1 && s.Tolerance < 1 {
		r.add(cluster.Concern{
			Code: cluster.ServersOneFromLoss, Area: cluster.AreaServers, State: cluster.Weak,
			Says: fmt.Sprintf("%d servers vote, and one more failure stops the cluster", voters), Next: "drover doctor -cluster",
		})
	}
}

// judgeNodes: who is away, and what of those that are there does not work.
func (r *Report) judgeNodes(s State) {
	var all, ready, down, draining, barred int
	for n := range s.Nodes("") {
		all++
		c := cluster.Concern{Area: cluster.AreaNodes, State: cluster.Weak, Subject: n.ID, Name: n.Name, Next: "drover node status " + n.ID}
		if n.StatusUpdatedAt > 0 {
			c.Since = time.Unix(n.StatusUpdatedAt, 0).UTC()
		}
		switch {
		case n.Status == drover.NodeStatusDown:
			down++
			c.Code, c.Says = cluster.NodeDown, fmt.Sprintf("node %s is down", n.Name)
			r.add(c)
			continue
		case n.Status == drover.NodeStatusDisconnected:
			down++
			c.Code, c.Says = cluster.NodeDisconnected, fmt.Sprintf("node %s is disconnected, and its work may still run there", n.Name)
			r.add(c)
			continue
		case n.Drain:
			draining++
		case n.Ready():
			ready++
		default:
			barred++
		}
		r.judgeDrivers(n, c)
	}
	r.nodes = "No node."
	if all > 0 {
		r.nodes = fmt.Sprintf("%d of %s ready for work", ready, of(all, "node", "nodes"))
		for _, part := range []struct {
			n    int
			said string
		}{{down, "away"}, {draining, "draining"}, {barred, "not eligible or not ready"}} {
			if part.n > 0 {
				r.nodes += fmt.Sprintf(", %d %s", part.n, part.said)
			}
		}
		r.nodes += "."
	}
	if all > 0 && ready == 0 {
		r.add(cluster.Concern{
			Code: cluster.NodesNone, Area: cluster.AreaNodes, State: cluster.Broken, Count: all,
			Says: fmt.Sprintf("no node takes work: %d away, %d draining, %d not eligible or not ready", down, draining, barred),
			Next: "drover node status",
		})
	}
}

// judgeDrivers: those that a node has, and that do not work.
func (r *Report) judgeDrivers(n *drover.Node, c cluster.Concern) {
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		if d := n.Drivers[name]; d != nil && d.Detected && !d.Healthy {
			c.Code, c.Since = cluster.NodeDriver, d.UpdateTime
			c.Says = fmt.Sprintf("driver %s of node %s does not work: %s", name, n.Name, cmp.Or(d.HealthDescription, "it does not say why"))
			r.add(c)
		}
	}
}

// queue counts a namespace's evaluations that wait.
type queue struct{ blocked, pending int }

func (q *queue) plus(o *queue) { q.blocked, q.pending = q.blocked+o.blocked, q.pending+o.pending }

// String is what the area says.
func (q *queue) String() string {
	if q.blocked+q.pending == 0 {
		return "Nothing waits."
	}
	return fmt.Sprintf("%d wait for room, %d for a scheduler.", q.blocked, q.pending)
}

// schedulesWithin is how long an evaluation waits for a scheduler when all is well.
const schedulesWithin = 30 * time.Second

// judgeEvaluations: what work has no place, and why. What waits for an environment's runners is told of the environment.
func (r *Report) judgeEvaluations(s State) {
	var blocked []*drover.Evaluation
	found := map[string]map[string]*drover.AllocationMetric{} // what evaluations found, by the blocked one that follows them
	for e := range s.Evaluations("*", "") {
		switch {
		case e.Status == drover.EvalBlocked:
			in(r.evaluations, e.Namespace).blocked++
			if !environmentJob(e.JobID) {
				blocked = append(blocked, e)
			}
		case e.Status == drover.EvalPending && !e.WaitUntil.After(r.at) && e.Wait == 0:
			in(r.evaluations, e.Namespace).pending++
			if since := time.Unix(0, e.CreateTime).UTC(); e.CreateTime > 0 && r.at.Sub(since) > schedulesWithin {
				r.add(cluster.Concern{
					Code: cluster.JobNotScheduled, Area: cluster.AreaEvaluations, State: cluster.Broken, Subject: e.JobID, Namespace: e.Namespace,
					Name: e.JobID, Since: since, Says: fmt.Sprintf("job %s waits for a scheduler", e.JobID), Next: "drover eval status " + e.ID,
				})
			}
		case e.BlockedEval != "" && len(e.FailedTGAllocs) > 0:
			found[e.BlockedEval] = e.FailedTGAllocs
		}
	}
	for _, e := range blocked {
		failed := e.FailedTGAllocs
		if len(failed) == 0 {
			failed = found[e.ID]
		}
		c := cluster.Concern{
			Code: cluster.JobNotPlaced, Area: cluster.AreaEvaluations, State: cluster.Broken, Subject: e.JobID, Namespace: e.Namespace,
			Name: e.JobID, Next: "drover eval status " + e.ID,
		}
		if e.CreateTime > 0 {
			c.Since = time.Unix(0, e.CreateTime).UTC()
		}
		c.Count, c.Says = r.unplaced(e, failed)
		r.add(c)
	}
}

// mostReasons is how many reasons are told of a group.
const mostReasons = 3

// unplaced says of a blocked evaluation how much has no place, and why.
func (r *Report) unplaced(e *drover.Evaluation, failed map[string]*drover.AllocationMetric) (count int, says string) {
	var parts []string
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		m, n := failed[group], 1
		if m != nil {
			n += m.CoalescedFailures
		}
		count += n
		part := fmt.Sprintf("group %s: %d not placed", group, n)
		if reasons := m.Reasons(); len(reasons) > 0 {
			part += ": " + strings.Join(reasons[:min(len(reasons), mostReasons)], ", ")
		}
		class := e.JobID + "/" + group
		if e.Namespace != drover.DefaultNamespace {
			class = e.Namespace + "/" + class
		}
		if w := r.waitingAtFleet[class]; w != nil {
			part += "; fleet: " + cmp.Or(w.Reason, fmt.Sprintf("%d of %d in line", w.Position, w.Of))
			if !w.ReadyAt.IsZero() {
				part += ", ready about " + w.ReadyAt.UTC().Format("15:04:05")
			}
		}
		parts = append(parts, part)
	}
	switch {
	case e.QuotaLimitReached != "":
		return count, fmt.Sprintf("job %s: the quota is used up: %s", e.JobID, e.QuotaLimitReached)
	case len(parts) == 0:
		return count, fmt.Sprintf("job %s: %s", e.JobID, cmp.Or(e.StatusDescription, "something of it has no place"))
	}
	return count, fmt.Sprintf("job %s, %s", e.JobID, strings.Join(parts, "; "))
}
