package feasible

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/network"
)

// Filter decides which nodes can run a group, whatever else runs there. What the computed class of a node decides is
// decided once a class.
type Filter struct {
	matcher   *Matcher
	namespace string                   // the job's
	shared    []*constraint.Constraint // decided by class
	unique    []*constraint.Constraint // decided by node
	drivers   []string
	volumes   []*drover.VolumeRequest
	known     Volumes
	devices   []*drover.RequestedDevice
	ports     []network.Port // those that ask for a host network
	network   string         // of CNI, that the group asks for; "" = none
	byClass   []verdict
}

// verdict remembers what was found out about a class.
type verdict struct {
	known  bool
	reason string // "" = feasible
}

// NewFilter returns the filter of a group. Nodes are asked about with the number of their class, below classes.
func NewFilter(m *Matcher, job *drover.Job, g *drover.TaskGroup, classes int) *Filter {
	f := &Filter{matcher: m, namespace: job.Namespace, byClass: make([]verdict, classes)}
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
	f.reach(g.Networks)
	if len(g.Networks) > 0 {
		f.network = g.Networks[0].CNIName()
	}
	for _, t := range g.Tasks {
		if t.Resources != nil {
			f.devices = append(f.devices, t.Resources.Devices...)
			f.reach(t.Resources.Networks)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Volumes)) {
		if v := g.Volumes[name]; v.Type == "" || v.Type == "host" {
			f.volumes = append(f.volumes, v)
		}
	}
	return f
}

// reach notes the ports that are to be on a named network of the machine.
func (f *Filter) reach(networks []*network.Resource) {
	for _, n := range networks {
		for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
			if p.HostNetwork != "" && p.HostNetwork != "default" {
				f.ports = append(f.ports, p)
			}
		}
	}
}

// unreached returns why one of the ports or the network can't be had on the node, "" if all can.
func (f *Filter) unreached(n *drover.Node) string {
	if f.network != "" && !hasNetwork(n, f.network) {
		text := fmt.Sprintf("missing network %q", "cni/"+f.network)
		if why := n.Attributes["plugins.cni.network."+f.network+".missing"]; why != "" {
			return text + ": " + why
		}
		return text + ": the node has no CNI configuration of that name"
	}
	for _, p := range f.ports {
		if HostAddress(n, p.HostNetwork) == "" {
			return fmt.Sprintf("missing host network %q for port %q", p.HostNetwork, p.Label)
		}
	}
	return ""
}

// hasNetwork reports whether the node offers a network of CNI.
func hasNetwork(n *drover.Node, name string) bool {
	return n.NodeResources != nil && slices.ContainsFunc(n.NodeResources.NodeNetworks, func(nn *drover.NodeNetworkResource) bool {
		return nn.Mode == "cni/"+name
	})
}

// HostAddress returns the node's first address in a host network; "" if it has none. "" and "default" mean the node's first.
func HostAddress(n *drover.Node, network string) string {
	named := network != "" && network != "default"
	if named {
		network, _ = Resolve(n, network)
	}
	if r := n.NodeResources; r != nil {
		for _, nn := range r.NodeNetworks {
			for _, a := range nn.Addresses {
				if a.Alias == network || !named {
					return a.Address
				}
			}
		}
		// Without an address of that name the first address of the older list counts, then the attribute.
		for _, nr := range r.Networks {
			if nr.IP != "" && !named {
				return nr.IP
			}
		}
	}
	if named {
		return ""
	}
	return n.Attributes["unique.network.ip-address"]
}

// implied is what a task needs without saying so: the network mode, where drivers tell which they have.
func implied(g *drover.TaskGroup, t *drover.Task) []*constraint.Constraint {
	mode, ok := t.Config["network_mode"].(string)
	if !ok && len(g.Networks) > 0 {
		mode = g.Networks[0].Mode
	}
	if mode == "" || t.Driver == "" {
		return nil
	}
	return []*constraint.Constraint{{LTarget: "${attr.driver." + t.Driver + ".network." + mode + "}", Operand: "!=", RTarget: "false"}}
}

// sort divides constraints by what decides them: the class, so that one node answers for all of it, or the node itself.
// The distinct operands depend on other placements and are package rank's.
func (f *Filter) sort(cs []*constraint.Constraint) {
	for _, c := range cs {
		switch {
		case c.Operand == DistinctHosts || c.Operand == DistinctProperty:
		case isUnique(c.LTarget) || isUnique(c.RTarget):
			f.unique = append(f.unique, c)
		default:
			f.shared = append(f.shared, c)
		}
	}
}

// Refusal returns why the node cannot run the group, in Nomad's words where it has any; "" if it can. class is the number of
// the node's computed class, -1 if it has none.
func (f *Filter) Refusal(n *drover.Node, class int32) string {
	if class >= 0 {
		v := &f.byClass[class]
		if !v.known {
			*v = verdict{known: true, reason: f.constraints(n, f.shared)}
		}
		if v.reason != "" {
			return v.reason
		}
	} else if reason := f.constraints(n, f.shared); reason != "" {
		return reason
	}
	for _, d := range f.drivers {
		if !hasDriver(n, d) {
			return missingDriver(n, d)
		}
	}
	if v, why := f.missingVolume(n); v != nil {
		return volumeReason(v, why)
	}
	if reason := f.missingDevices(n); reason != "" {
		return reason
	}
	if reason := f.unreached(n); reason != "" {
		return reason
	}
	return f.constraints(n, f.unique)
}

// MayStay reports whether the job's constraints, datacenters and node pool allow the node that an allocation of the group
// is on, whose index is given. It is false without a node.
func MayStay(m *Matcher, v Volumes, job *drover.Job, g *drover.TaskGroup, index int, n *drover.Node) bool {
	return n != nil && InDatacenter(job, n.Datacenter) && InPool(job, n) &&
		NewFilter(m, job, Single(g, index), 0).Knowing(v).Refusal(n, -1) == ""
}

// Lacks returns what a node does not have that the group needs, whatever else runs there: "driver raw_exec", a volume,
// a device, a constraint; "" if it can run it. Constraints that spare returns true for are not looked at. A driver that
// is there but not well is not lacking.
func Lacks(job *drover.Job, g *drover.TaskGroup, n *drover.Node, spare func(*constraint.Constraint) bool) string {
	f := NewFilter(NewMatcher(), job, g, 0)
	for _, name := range f.drivers {
		if d := n.Drivers[name]; (d == nil || !d.Detected) && !hasDriver(n, name) {
			return "driver " + name
		}
	}
	if v, _ := f.missingVolume(n); v != nil {
		return "host volume " + v.Source
	}
	for _, want := range f.devices {
		if _, found := f.findDevice(n, want); !found {
			return "device " + want.Name
		}
	}
	if reason := f.unreached(n); reason != "" {
		return reason
	}
	for _, c := range slices.Concat(f.shared, f.unique) {
		if !spare(c) && !f.matcher.Node(n, c.LTarget, c.Operand, c.RTarget) {
			return constraintText(c)
		}
	}
	return ""
}

// constraints returns why the node does not meet the first constraint that it fails, "" if it meets all.
func (f *Filter) constraints(n *drover.Node, cs []*constraint.Constraint) string {
	for _, c := range cs {
		if !f.matcher.Node(n, c.LTarget, c.Operand, c.RTarget) {
			return lacking(n, c)
		}
	}
	return ""
}

// missingDriver names the driver that a node has not, with the node's own words where it says why, else with the nearest that it has.
func missingDriver(n *drover.Node, name string) string {
	text := "missing drivers: " + name
	switch d := n.Drivers[name]; {
	case d != nil && d.HealthDescription != "":
		text += " (" + d.HealthDescription + ")"
	case d == nil:
		if near := nearestDriver(n, name); near != "" {
			text += " (the nearest that is there: " + near + ")"
		}
	}
	return text
}

// kin are the drivers that do most of what another does, the nearest first.
var kin = map[string][]string{
	"exec": {"sandbox", "raw_exec"}, "exec2": {"exec", "sandbox", "raw_exec"}, "java": {"exec", "sandbox", "docker", "raw_exec"},
	"sandbox": {"exec", "docker"}, "raw_exec": {"exec", "sandbox"},
	"docker": {"podman", "sandbox"}, "podman": {"docker", "sandbox"}, "containerd-driver": {"docker", "podman", "sandbox"},
	"virt": {"qemu"}, "qemu": {"virt"},
}

// nearestDriver is the driver of the node that a job could take instead, "" if it has none of the kind, nor one of nearly that name.
func nearestDriver(n *drover.Node, name string) string {
	for _, k := range kin[name] {
		if hasDriver(n, k) {
			return k
		}
	}
	if kin[name] != nil {
		return ""
	}
	var names []string
	for _, k := range slices.Sorted(maps.Keys(n.Drivers)) {
		if hasDriver(n, k) {
			names = append(names, k)
		}
	}
	return validation.Nearest(name, names)
}

// lacking says which constraint a node does not meet; of a driver's network mode, which nobody asked for by its
// attribute, in the driver's own words.
func lacking(n *drover.Node, c *constraint.Constraint) string {
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

// Escaped reports whether a node can be refused for something that its class does not show.
func (f *Filter) Escaped() bool { return len(f.unique) > 0 }

// Eligibility adds to classes what is known, names being the names of the classes by number: a class that one group
// can use is eligible.
func (f *Filter) Eligibility(names []string, classes map[string]bool) {
	for i, v := range f.byClass {
		if v.known {
			classes[names[i]] = classes[names[i]] || v.reason == ""
		}
	}
}
