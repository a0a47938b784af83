package demand

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/gate"
)

// gate.AttributeTemplate is what a machine's node was made from.

// machineKind is machines of which one tells what all of them can run.
type machineKind struct{ pool, template, typ string }

func kindOf(n *drover.Node) (k machineKind, ok bool) {
	k = machineKind{n.Attributes[gate.AttributePool], n.Attributes[gate.AttributeTemplate], n.Attributes[gate.AttributeType]}
	return k, k.pool != "" && k.template != "" && k.typ != "" && len(n.Drivers) > 0
}

// learnKind remembers what machines of a node's kind are like: the newest one that was ready says. If that differs from what
// was known, the demand is announced anew.
func (v *View) learnKind(n *drover.Node) {
	k, ok := kindOf(n)
	if !ok {
		return
	}
	old := v.kinds[k]
	if old != nil && (n.Status != drover.NodeStatusReady || n.CreateIndex < old.CreateIndex) {
		return
	}
	v.kinds[k] = n
	if old == nil || old.ComputedClass != n.ComputedClass || !sameDrivers(old, n) {
		v.kindsVersion++
		broadcast(&v.waiting)
	}
}

func sameDrivers(a, b *drover.Node) bool {
	return maps.EqualFunc(a.Drivers, b.Drivers, func(x, y *drover.DriverInfo) bool { return x.Detected == y.Detected })
}

// refusals lists the machines that can't run a group whatever else runs on them, so that none is bought or kept for it. These
// are the kinds of machine of which one was seen to refuse it, and the pools whose configuration says so for all of their
// machines. A driver that no machine of a template has that was seen is not looked for on its other types.
func (v *View) refusals(s State, j *drover.Job, g *drover.TaskGroup, nodePool string) (list []fleet.Refusal) {
	for p := range s.FleetPools() {
		if p.Policy.NodePool != nodePool || v.cfg.Local == nil {
			continue
		}
		if off := missingDriver(p.Policy, g, v.cfg.Local(p.Policy.Provider)); off != "" {
			list = append(list, fleet.Refusal{Pool: p.Name, Template: p.Policy.Template(), Needs: "driver " + off})
		}
	}
	type made struct{ pool, template string }
	without := map[made]string{} // the driver that none of its machines has; "" if one has what is needed
	for _, k := range slices.SortedFunc(maps.Keys(v.kinds), func(a, b machineKind) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.template, b.template), cmp.Compare(a.typ, b.typ))
	}) {
		n := v.kinds[k]
		if n.NodePool != nodePool {
			continue
		}
		needs := v.deps.Lacks(j, g, n, aboutPlace)
		if needs != "" {
			list = append(list, fleet.Refusal{Pool: k.pool, Template: k.template, Type: k.typ, Needs: needs})
		}
		m := made{k.pool, k.template}
		if was, known := without[m]; !strings.HasPrefix(needs, "driver ") || known && was != needs {
			without[m] = ""
		} else {
			without[m] = needs
		}
	}
	for _, m := range slices.SortedFunc(maps.Keys(without), func(a, b made) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.template, b.template))
	}) {
		if without[m] != "" {
			list = append(list, fleet.Refusal{Pool: m.pool, Template: m.template, Needs: without[m]})
		}
	}
	return list
}

// aboutPlace reports that a constraint is on what differs between machines of a type: offerings tell that.
func aboutPlace(c *constraint.Constraint) bool {
	for _, t := range []string{c.LTarget, c.RTarget} {
		switch t {
		case "${attr." + gate.AttributeZone + "}", "${attr." + gate.AttributeMarket + "}":
			return true
		}
	}
	return false
}

// refused caches refusals for as long as the job and the machines seen are the same.
type refused struct {
	job, kinds uint64
	pool       string
	pools      uint64
	list       []fleet.Refusal
}

// refusalsOf is refusals of a group that waits, looked up again only if something changed.
func (v *View) refusalsOf(s State, b *blockedWork, j *drover.Job, g *drover.TaskGroup, nodePool string) []fleet.Refusal {
	pools := uint64(0)
	for p := range s.FleetPools() {
		pools = max(pools, p.ModifyIndex)
	}
	if r, ok := b.refused[g.Name]; ok && r.job == j.JobModifyIndex && r.kinds == v.kindsVersion && r.pool == nodePool && r.pools == pools {
		return r.list
	}
	if b.refused == nil {
		b.refused = map[string]refused{}
	}
	list := v.refusals(s, j, g, nodePool)
	b.refused[g.Name] = refused{j.JobModifyIndex, v.kindsVersion, nodePool, pools, list}
	return list
}

// missingDriver returns a driver that the group needs and that machines of the policy surely do not have; "" = none. Drover's
// own configuration for them turns no driver on, and hands nothing of the server's on. local machines lack docker too.
func missingDriver(p *fleet.Policy, g *drover.TaskGroup, local bool) string {
	ours := p.UserData == "" && (p.SSH == nil || p.SSH.Config == "")
	for _, t := range g.Tasks {
		switch t.Driver {
		case "", "sandbox", "exec", "java", "qemu": // java and qemu, where the machine's image has them
		case "raw_exec", "mock_driver", "fake", "podman":
			if ours {
				return t.Driver
			}
		case "docker":
			if ours && local {
				return t.Driver
			}
		default: // no driver of ours, whatever their configuration
			return t.Driver
		}
	}
	return ""
}
