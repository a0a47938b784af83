package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/fleet/gate"
)

// gate.AttributeTemplate is what a machine's node was made from.

// machineKind is machines of which one tells what all of them can run.
type machineKind struct{ pool, template, typ string }

func kindOf(n *drover.Node) (k machineKind, ok bool) {
	k = machineKind{n.Attributes[gate.AttributePool], n.Attributes[gate.AttributeTemplate], n.Attributes[gate.AttributeType]}
	return k, k.pool != "" && k.template != "" && k.typ != "" && len(n.Drivers) > 0
}

// look notes what machines of a node's kind are like: the newest that was well tells. The demand is told anew if that
// is something else than was known.
func (v *fleetView) look(n *drover.Node) {
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
		v.kindsSeen++
		wake(&v.waiting)
	}
}

func sameDrivers(a, b *drover.Node) bool {
	return maps.EqualFunc(a.Drivers, b.Drivers, func(x, y *drover.DriverInfo) bool { return x.Detected == y.Detected })
}

// refusals lists the machines that can't run a group whatever else runs on them, so that none is bought or kept for it:
// those of whose kind one was seen, and, as it is all by their configuration, those whose pool says so. A driver that no
// machine of a template has that was seen is not looked for on its other types.
func (v *fleetView) refusals(s *store.Snapshot, j *drover.Job, g *drover.TaskGroup, nodePool string) (list []drover.Refusal) {
	for p := range s.FleetPools() {
		if p.Policy.NodePool != nodePool || v.drivers == nil {
			continue
		}
		if off := v.drivers(p.Policy, g); off != "" {
			list = append(list, drover.Refusal{Pool: p.Name, Template: p.Policy.Template(), Needs: "driver " + off})
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
		needs := scheduler.Lacks(j, g, n, ofPlace)
		if needs != "" {
			list = append(list, drover.Refusal{Pool: k.pool, Template: k.template, Type: k.typ, Needs: needs})
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
			list = append(list, drover.Refusal{Pool: m.pool, Template: m.template, Needs: without[m]})
		}
	}
	return list
}

// ofPlace reports that a constraint is on what differs between machines of a type: offerings tell that.
func ofPlace(c *drover.Constraint) bool {
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
	list       []drover.Refusal
}

// refusalsOf is refusals of a group that waits, looked up again only if something changed.
func (v *fleetView) refusalsOf(s *store.Snapshot, b *blockedWork, j *drover.Job, g *drover.TaskGroup, nodePool string) []drover.Refusal {
	pools := uint64(0)
	for p := range s.FleetPools() {
		pools = max(pools, p.ModifyIndex)
	}
	if r, ok := b.refused[g.Name]; ok && r.job == j.JobModifyIndex && r.kinds == v.kindsSeen && r.pool == nodePool && r.pools == pools {
		return r.list
	}
	if b.refused == nil {
		b.refused = map[string]refused{}
	}
	list := v.refusals(s, j, g, nodePool)
	b.refused[g.Name] = refused{j.JobModifyIndex, v.kindsSeen, nodePool, pools, list}
	return list
}

// driverOff returns a driver that the group needs and that machines of the policy surely do not have: Drover's own
// configuration for them turns it on for none, and hands nothing of the server's on.
func driverOff(providers []*config.FleetProvider) func(*drover.FleetPolicy, *drover.TaskGroup) string {
	return func(p *drover.FleetPolicy, g *drover.TaskGroup) string {
		ours := p.UserData == "" && (p.SSH == nil || p.SSH.Config == "")
		local := false
		for _, c := range providers {
			local = local || c.Name == p.Provider && c.Kind() != kindEC2
		}
		for _, t := range g.Tasks {
			switch t.Driver {
			case "", "sandbox":
			case "raw_exec", "mock_driver", "fake":
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
}
