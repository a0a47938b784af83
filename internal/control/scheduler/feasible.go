package scheduler

import (
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// feasibility decides which nodes can run a group, whatever else runs there. What a computed class decides is decided
// once a class.
type feasibility struct {
	matcher *matcher
	job     *drover.Job
	group   *drover.TaskGroup
	shared  []*drover.Constraint // decided by class
	unique  []*drover.Constraint // decided by node
	drivers []string
	volumes []*drover.VolumeRequest
	devices []*drover.RequestedDevice
	byClass []verdict

	// escaped says that a node can be refused for something its class does not show.
	escaped bool
}

type verdict struct {
	known  bool
	reason string // "" = feasible
}

func newFeasibility(m *matcher, job *drover.Job, g *drover.TaskGroup, classes int) *feasibility {
	f := &feasibility{matcher: m, job: job, group: g, byClass: make([]verdict, classes)}
	f.sort(job.Constraints)
	f.sort(g.Constraints)
	seen := map[string]bool{}
	for _, t := range g.Tasks {
		f.sort(t.Constraints)
		if t.Driver != "" && !seen[t.Driver] {
			seen[t.Driver] = true
			f.drivers = append(f.drivers, t.Driver)
		}
		f.sort(implied(g, t))
	}
	for _, t := range g.Tasks {
		if t.Resources != nil {
			f.devices = append(f.devices, t.Resources.Devices...)
		}
	}
	for _, name := range sortedKeys(g.Volumes) {
		if v := g.Volumes[name]; v.Type == "" || v.Type == "host" {
			f.volumes = append(f.volumes, v)
		}
	}
	f.escaped = len(f.unique) > 0
	return f
}

// implied is what a task needs without saying so: the network mode, where drivers tell which they have.
func implied(g *drover.TaskGroup, t *drover.Task) []*drover.Constraint {
	mode, ok := t.Config["network_mode"].(string)
	if !ok && len(g.Networks) > 0 {
		mode = g.Networks[0].Mode
	}
	if mode == "" || t.Driver == "" {
		return nil
	}
	return []*drover.Constraint{{LTarget: "${attr.driver." + t.Driver + ".network." + mode + "}", Operand: "!=", RTarget: "false"}}
}

func (f *feasibility) sort(cs []*drover.Constraint) {
	for _, c := range cs {
		switch {
		case c.Operand == distinctHosts || c.Operand == distinctProperty:
		case isUnique(c.LTarget) || isUnique(c.RTarget):
			f.unique = append(f.unique, c)
		default:
			f.shared = append(f.shared, c)
		}
	}
}

// check returns why the node cannot run the group, "" if it can.
func (f *feasibility) check(c *candidate) string {
	if c.class >= 0 {
		v := &f.byClass[c.class]
		if !v.known {
			*v = verdict{known: true, reason: f.constraints(c.node, f.shared)}
		}
		if v.reason != "" {
			return v.reason
		}
	} else if reason := f.constraints(c.node, f.shared); reason != "" {
		return reason
	}
	for _, d := range f.drivers {
		if !hasDriver(c.node, d) {
			return missingDriver(c.node, d)
		}
	}
	if !f.hasVolumes(c.node) {
		return "missing compatible host volumes"
	}
	if !f.hasDevices(c.node) {
		return "missing devices"
	}
	return f.constraints(c.node, f.unique)
}

// Lacks returns what a node does not have that the group needs, whatever else runs there: "driver raw_exec", a volume, a device,
// a constraint; "" if it can run it. Constraints that spare returns true for are not looked at. A driver that is
// there but not well is not lacking.
func Lacks(job *drover.Job, g *drover.TaskGroup, n *drover.Node, spare func(*drover.Constraint) bool) string {
	f := newFeasibility(newMatcher(), job, g, 0)
	for _, name := range f.drivers {
		if d := n.Drivers[name]; (d == nil || !d.Detected) && !hasDriver(n, name) {
			return "driver " + name
		}
	}
	for _, v := range f.volumes {
		if have, ok := n.HostVolumes[v.Source]; !ok || have.ReadOnly && !v.ReadOnly {
			return "host volume " + v.Source
		}
	}
	for _, want := range f.devices {
		if one := (feasibility{matcher: f.matcher, devices: []*drover.RequestedDevice{want}}); !one.hasDevices(n) {
			return "device " + want.Name
		}
	}
	for _, c := range slices.Concat(f.shared, f.unique) {
		if !spare(c) && !f.matcher.node(n, c.LTarget, c.Operand, c.RTarget) {
			return constraintText(c)
		}
	}
	return ""
}

func (f *feasibility) constraints(n *drover.Node, cs []*drover.Constraint) string {
	for _, c := range cs {
		if !f.matcher.node(n, c.LTarget, c.Operand, c.RTarget) {
			return lacking(n, c)
		}
	}
	return ""
}

// missingDriver names the driver that a node has not, with the node's own words where it says why.
func missingDriver(n *drover.Node, name string) string {
	text := "missing drivers: " + name
	if d := n.Drivers[name]; d != nil && d.HealthDescription != "" {
		text += " (" + d.HealthDescription + ")"
	}
	return text
}

// lacking says which constraint a node does not meet; of a driver's network mode, which nobody asked for by its
// attribute, in the driver's own words.
func lacking(n *drover.Node, c *drover.Constraint) string {
	attribute := strings.TrimSuffix(strings.TrimPrefix(c.LTarget, "${attr."), "}")
	driver, mode, ok := strings.Cut(strings.TrimPrefix(attribute, "driver."), ".network.")
	if !ok || c.RTarget != "false" {
		return constraintText(c)
	}
	text := "driver " + driver + " has no network mode " + mode
	if why := n.Attributes[attribute+".missing"]; why != "" {
		text += ": " + why
	}
	return text
}

// hasDriver reports whether the driver is there and well. "mock_driver" is the fake driver's other name.
func hasDriver(n *drover.Node, name string) bool {
	if d, ok := n.Drivers[name]; ok {
		return d.Detected && d.Healthy
	}
	if d, ok := n.Drivers["fake"]; ok && name == "mock_driver" {
		return d.Detected && d.Healthy
	}
	v := n.Attributes["driver."+name]
	return v == "1" || v == "true"
}

func (f *feasibility) hasVolumes(n *drover.Node) bool {
	for _, v := range f.volumes {
		have, ok := n.HostVolumes[v.Source]
		if !ok || have.ReadOnly && !v.ReadOnly {
			return false
		}
	}
	return true
}

// eligibility adds to classes what is known: a class that one group can use is eligible.
func (f *feasibility) eligibility(names []string, classes map[string]bool) {
	for i, v := range f.byClass {
		if v.known {
			classes[names[i]] = classes[names[i]] || v.reason == ""
		}
	}
}
