package registration

import (
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/taskenv"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// Service is a service of an allocation with its references resolved.
type Service struct {
	*service.Service        // as the job has it
	Task             string // "" = of the group
	Name             string
	Tags             []string
	Env              *taskenv.Env
}

// Key names a service among those of its allocation: OWNER/NAME/PORT, where the owner is its task, "" of the group.
func (s *Service) Key() string { return s.Task + "/" + s.Name + "/" + s.PortLabel }

// Any reports whether the allocation has services that are registered here.
func Any(a *drover.Allocation) bool {
	g := groupOf(a)
	ours := func(s *service.Service) bool { return s != nil && s.Provider == service.ProviderNomad }
	return g != nil && (slices.ContainsFunc(g.Services, ours) ||
		slices.ContainsFunc(g.Tasks, func(t *drover.Task) bool { return slices.ContainsFunc(t.Services, ours) }))
}

func groupOf(a *drover.Allocation) *drover.TaskGroup {
	if a == nil || a.Job == nil {
		return nil
	}
	return a.Job.Group(a.TaskGroup)
}

// Of returns the registrations of an allocation on its node, in the order of its services: those of the group while the allocation
// runs, those of a task while that does. There are none of what is being stopped, and none of a service whose address is not known.
func Of(a *drover.Allocation, n *drover.Node) (out []*service.Registration) {
	if !Any(a) || a.ClientStatus != drover.AllocClientRunning || a.ServerTerminal() {
		return nil
	}
	for _, s := range Services(a, n) {
		if s.Task != "" && (a.TaskStates[s.Task] == nil || a.TaskStates[s.Task].State != drover.TaskStateRunning) {
			continue
		}
		address, port, known := Address(s.AddressMode, s.Env.Replace(s.Address), s.Env.Replace(s.PortLabel), a, n)
		if !known {
			continue
		}
		r := &service.Registration{
			ID: id(a, s), ServiceName: s.Name, Namespace: a.Namespace, NodeID: a.NodeID, JobID: a.JobID, AllocID: a.ID, Tags: s.Tags,
			Address: address, Port: port, CreateIndex: a.CreateIndex, ModifyIndex: a.AllocModifyIndex,
			Unhealthy: slices.Contains(a.FailingServices, s.Key()),
		}
		if n != nil {
			r.Datacenter = n.Datacenter
		}
		if !slices.ContainsFunc(out, func(other *service.Registration) bool { return other.ID == r.ID }) {
			out = append(out, r)
		}
	}
	return out
}

// id is Nomad's: other programs take it apart.
func id(a *drover.Allocation, s Service) string {
	owner := s.Task
	if owner == "" {
		owner = "group-" + a.TaskGroup
	}
	return "_nomad-task-" + a.ID + "-" + owner + "-" + s.Name + "-" + s.PortLabel
}

// Services returns the allocation's services that are registered here, whether it runs or not.
func Services(a *drover.Allocation, n *drover.Node) (out []Service) {
	g := groupOf(a)
	if g == nil {
		return nil
	}
	canary := a.DeploymentStatus != nil && a.DeploymentStatus.Canary
	add := func(t *drover.Task, list []*service.Service) {
		var env *taskenv.Env
		for _, s := range list {
			if s == nil || s.Provider != service.ProviderNomad {
				continue
			}
			if env == nil {
				env = taskenv.Build(taskenv.Input{Node: n, Alloc: a, Group: g, Task: t, Dirs: taskenv.Dirs{
					Shared: "/alloc", Local: "/local", Secrets: "/secrets",
				}})
			}
			one := Service{Service: s, Name: env.Replace(s.Name), Tags: s.Tags, Env: env}
			if t != nil {
				one.Task = t.Name
			}
			if canary && len(s.CanaryTags) > 0 {
				one.Tags = s.CanaryTags
			}
			one.Tags = slices.Clone(one.Tags)
			for i := range one.Tags {
				one.Tags[i] = env.Replace(one.Tags[i])
			}
			out = append(out, one)
		}
	}
	add(nil, g.Services)
	for _, t := range g.Tasks {
		add(t, t.Services)
	}
	return out
}

// Address resolves a port, by its label or its number, in an address mode; custom is the address of the service's own.
// It reports false if the allocation has no such address (yet), or no such port. Without a port the address alone counts.
func Address(mode, custom, port string, a *drover.Allocation, n *drover.Node) (address string, number int, known bool) {
	m, found := portOf(a, port)
	if !found && port != "" {
		literal, err := strconv.Atoi(port)
		if err != nil || literal < 1 || literal > 65535 {
			return "", 0, false
		}
		m = network.PortMapping{Value: literal, HostIP: hostAddress(n)}
	}
	inner := m.Value
	if m.To > 0 {
		inner = m.To
	}
	switch mode {
	case service.AddressModeAlloc, service.AddressModeDriver:
		if a.NetworkStatus == nil || a.NetworkStatus.Address == "" {
			return "", 0, false
		}
		return a.NetworkStatus.Address, inner, true
	case service.AddressModeAllocIPv6:
		if a.NetworkStatus == nil || a.NetworkStatus.AddressIPv6 == "" {
			return "", 0, false
		}
		return a.NetworkStatus.AddressIPv6, inner, true
	}
	if custom != "" {
		return custom, m.Value, true
	}
	if port == "" {
		m.HostIP = hostAddress(n)
	}
	return m.HostIP, m.Value, m.HostIP != ""
}

// portOf finds a port of the allocation by its label: of the group's network, or of a task's in the older form.
func portOf(a *drover.Allocation, label string) (network.PortMapping, bool) {
	r := a.AllocatedResources
	if r == nil || label == "" {
		return network.PortMapping{}, false
	}
	for _, p := range r.Shared.Ports {
		if p.Label == label {
			return p, true
		}
	}
	for _, t := range r.Tasks {
		for _, n := range t.Networks {
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				if p.Label == label {
					return network.PortMapping{Label: label, Value: p.Value, To: p.To, HostIP: n.IP}, true
				}
			}
		}
	}
	return network.PortMapping{}, false
}

// hostAddress is the node's first address.
func hostAddress(n *drover.Node) string {
	if n == nil {
		return ""
	}
	if r := n.NodeResources; r != nil {
		for _, network := range r.NodeNetworks {
			for _, a := range network.Addresses {
				return a.Address
			}
		}
	}
	return n.Attributes["unique.network.ip-address"]
}
