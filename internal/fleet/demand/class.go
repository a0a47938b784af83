package demand

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/gate"
)

// coreMHz is what one reserved core counts as when machines are chosen, before a node says what its cores are.
const coreMHz = 3000

// servingPool says which node pool's machines a job waits for; those that may run anywhere count for the first pool.
func servingPool(j *drover.Job, first string) string {
	if j.NodePool == drover.AllNodePool {
		return first
	}
	return j.NodePool
}

// Demand returns what waits for nodes of the pool, in a fixed order, and a channel that the next change closes.
func (v *View) Demand(nodePool, first string) ([]fleet.DemandClass, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.deps.State()
	for nodeID := range v.dirty { // what was seen before a restart is known before anything is bought
		if n := s.Node(nodeID); n != nil && n.Attributes[gate.AttributeInstance] != "" {
			v.learnKind(n)
		}
	}
	var list []fleet.DemandClass
	paid := purse{}
	for _, key := range v.inOrder(s) {
		b, j := v.blocked[key], s.Job(key.Namespace, key.ID)
		if j == nil || j.Stop || servingPool(j, first) != nodePool {
			continue
		}
		for _, g := range j.TaskGroups {
			if n := paid.take(s, j, g, b.count(s, j, g)); n > 0 {
				c := classOf(j, g, n, b.since)
				c.Refusals = v.refusalsOf(s, b, j, g, nodePool)
				c.Held = paid.held(s, j.Namespace, v.deps.Now)
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b fleet.DemandClass) int { return cmp.Compare(a.Name, b.Name) })
	return list, v.waiting
}

// count returns how many of the group wait: what the scheduler could not place, less what was placed since.
func (b *blockedWork) count(s State, j *drover.Job, g *drover.TaskGroup) int {
	if b.queued != nil {
		return b.queued[g.Name] - b.placed[g.Name]
	}
	want := 1 // a restart lost what the scheduler said
	if g.Count != nil {
		want = *g.Count
	}
	if g.Pool != nil {
		want = g.Pool.Size + g.Pool.Demand
	}
	for a := range s.ActiveAllocationsByJob(j.Namespace, j.ID) {
		if a.TaskGroup == g.Name && !a.Terminal() && a.Claim == nil {
			want--
		}
	}
	return want
}

func classOf(j *drover.Job, g *drover.TaskGroup, n int, since int64) fleet.DemandClass {
	c := fleet.DemandClass{
		Name: j.ID + "/" + g.Name, NodePool: j.NodePool, Each: g.Asked(), Count: n, Priority: j.Priority, Since: time.Unix(0, since),
		Constraints: slices.Concat(j.Constraints, g.Constraints),
	}
	if j.Namespace != drover.DefaultNamespace {
		c.Name = j.Namespace + "/" + c.Name
	}
	if d := datacenterConstraint(j.Datacenters); d != nil {
		c.Constraints = append(c.Constraints, d)
	}
	for _, t := range g.Tasks {
		c.Constraints = append(c.Constraints, t.Constraints...)
		if t.Resources == nil {
			continue
		}
		c.Each.CPU += int64(t.Resources.Cores) * coreMHz
		for _, d := range t.Resources.Devices {
			if c.Devices == nil {
				c.Devices = map[string]int{}
			}
			c.Devices[d.Name] += int(max(d.Count, 1))
			c.Constraints = append(c.Constraints, d.Constraints...)
		}
	}
	return c
}

// datacenterConstraint is the constraint that a node is in one of the job's datacenters, which may be patterns; nil if any will do.
func datacenterConstraint(datacenters []string) *constraint.Constraint {
	var all []string
	for _, d := range datacenters {
		if d == "*" {
			return nil
		}
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(d), `\*`, ".*"))
	}
	if len(all) == 0 {
		return nil
	}
	return &constraint.Constraint{LTarget: "${node.datacenter}", Operand: "regexp", RTarget: "^(?:" + strings.Join(all, "|") + ")$"}
}
