package taskenv

import (
	"cmp"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/references"
	"github.com/drover-project/drover/network"
)

// Env is the environment of one task on one node. It is not changed after Build, except by With.
type Env struct {
	vars map[string]string
	node *drover.Node  // says what is not a variable: node.…, attr.…, meta.…; may be nil
	made *atomic.Int64 // bytes that interpolation has made, with all copies
}

// What interpolation may make: a text of references to a long variable grows with the product of both.
const (
	maxText  = 1 << 20  // bytes of one text; no program takes longer ones
	maxTexts = 64 << 20 // of all texts in one start of a task
)

// Err reports whether interpolation would have made more than it may: texts are left as they were then. Errors: TooLarge.
func (e *Env) Err() error {
	if e.made.Load() <= maxTexts {
		return nil
	}
	return drover.Errorf(
		drover.TooLarge, "the references ${…} make texts of more than %d MB, or of more than %d MB together", maxText>>20, maxTexts>>20,
	)
}

// Input is what an environment is made from.
type Input struct {
	Node  *drover.Node
	Alloc *drover.Allocation
	Group *drover.TaskGroup
	Task  *drover.Task // nil: of the group
	Dirs  Dirs
	// Network is the allocation's place in a network of its own; nil: it has none yet.
	Network *network.Status
}

// Dirs are the task's folders, as the task sees them.
type Dirs struct{ Shared, Local, Secrets string }

// Build makes the environment: Nomad's variables, the meta, then the task's own env, which wins. Variables of the env
// may use each other.
func Build(in Input) *Env {
	e := &Env{vars: map[string]string{}, node: in.Node, made: new(atomic.Int64)}
	if in.Task == nil {
		in.Task = &drover.Task{}
	}
	e.identity(in)
	e.limits(in)
	e.ports(in)
	e.meta(in)
	order, _ := references.Order(in.Task.Env) // a ring is refused at the registration
	for _, k := range order {
		value := e.Replace(in.Task.Env[k])
		e.vars[cleanKey(e.Replace(k))] = value
	}
	return e
}

// With returns a copy with more variables, which win.
func (e *Env) With(vars map[string]string) *Env {
	out := &Env{vars: maps.Clone(e.vars), node: e.node, made: e.made}
	maps.Copy(out.vars, vars)
	return out
}

// Vars returns the variables; the caller must not change them.
func (e *Env) Vars() map[string]string { return e.vars }

// identity sets the variables that say who and where the task is. The index is what stands in brackets in the
// allocation's name. Without a node, as in some tests, NOMAD_DC is missing.
func (e *Env) identity(in Input) {
	a := in.Alloc
	index := ""
	if i := strings.LastIndexByte(a.Name, '['); i >= 0 {
		index = strings.TrimSuffix(a.Name[i+1:], "]")
	}
	set := e.vars
	set["NOMAD_ALLOC_DIR"], set["NOMAD_TASK_DIR"], set["NOMAD_SECRETS_DIR"] = in.Dirs.Shared, in.Dirs.Local, in.Dirs.Secrets
	set["NOMAD_ALLOC_ID"], set["NOMAD_SHORT_ALLOC_ID"] = a.ID, a.ID[:min(8, len(a.ID))]
	set["NOMAD_ALLOC_NAME"], set["NOMAD_ALLOC_INDEX"] = a.Name, index
	set["NOMAD_TASK_NAME"], set["NOMAD_GROUP_NAME"] = in.Task.Name, a.TaskGroup
	set["NOMAD_JOB_ID"], set["NOMAD_NAMESPACE"] = a.JobID, a.Namespace
	if a.Job != nil {
		set["NOMAD_JOB_NAME"], set["NOMAD_REGION"] = a.Job.Name, a.Job.Region
		if a.Job.ParentID != "" {
			set["NOMAD_JOB_PARENT_ID"] = a.Job.ParentID
		}
	}
	if in.Node != nil {
		set["NOMAD_DC"] = in.Node.Datacenter
	}
}

// limits sets the task's share: CPU in MHz, memory in MB. Cores are listed only if some are reserved for the task.
func (e *Env) limits(in Input) {
	share := allocated(in)
	e.vars["NOMAD_CPU_LIMIT"] = strconv.FormatInt(share.Cpu.CpuShares, 10)
	e.vars["NOMAD_MEMORY_LIMIT"] = strconv.FormatInt(share.Memory.MemoryMB, 10)
	if share.Memory.MemoryMaxMB > 0 {
		e.vars["NOMAD_MEMORY_MAX_LIMIT"] = strconv.FormatInt(share.Memory.MemoryMaxMB, 10)
	}
	if cores := share.Cpu.ReservedCores; len(cores) > 0 {
		list := make([]string, len(cores))
		for i, c := range cores {
			list[i] = strconv.Itoa(int(c))
		}
		e.vars["NOMAD_CPU_CORES"] = strings.Join(list, ",")
	}
}

// allocated returns the task's share as it was placed. An allocation without placed resources has what its task asks
// for.
func allocated(in Input) drover.AllocatedTaskResources {
	if r := in.Alloc.AllocatedResources; r != nil && r.Tasks[in.Task.Name] != nil {
		return *r.Tasks[in.Task.Name]
	}
	var out drover.AllocatedTaskResources
	if r := in.Task.Resources; r != nil {
		out.Cpu.CpuShares = int64(r.CPU)
		out.Memory.MemoryMB, out.Memory.MemoryMaxMB = int64(r.MemoryMB), int64(r.MemoryMaxMB)
	}
	return out
}

// ports sets addresses by label. The plain port is the one inside the task's network; HOST_ names the machine's side.
// Networks of a task, the older form of a job, are named "task_label".
func (e *Env) ports(in Input) {
	r := in.Alloc.AllocatedResources
	if r == nil {
		return
	}
	for _, p := range r.Shared.Ports {
		label, host := cleanLabel(p.Label), strconv.Itoa(p.Value)
		inner := host
		if p.To > 0 {
			inner = strconv.Itoa(p.To)
		}
		e.vars["NOMAD_IP_"+label], e.vars["NOMAD_HOST_IP_"+label] = p.HostIP, p.HostIP
		e.vars["NOMAD_PORT_"+label], e.vars["NOMAD_ALLOC_PORT_"+label] = inner, inner
		e.vars["NOMAD_HOST_PORT_"+label] = host
		e.vars["NOMAD_ADDR_"+label] = p.HostIP + ":" + host
		e.vars["NOMAD_HOST_ADDR_"+label] = p.HostIP + ":" + host
		maps.Copy(e.vars, Inside(in.Network, p))
	}
	for name, t := range r.Tasks {
		for _, n := range t.Networks {
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				label, port := cleanLabel(name+"_"+p.Label), strconv.Itoa(p.Value)
				e.vars["NOMAD_ADDR_"+label], e.vars["NOMAD_IP_"+label], e.vars["NOMAD_PORT_"+label] = n.IP+":"+port, n.IP, port
			}
		}
	}
}

// Inside is what a port is called within the allocation's own network; nothing without one.
func Inside(status *network.Status, p network.PortMapping) map[string]string {
	if status == nil {
		return nil
	}
	label, address, port := cleanLabel(p.Label), cmp.Or(status.Address, status.AddressIPv6), p.Value
	if p.To > 0 {
		port = p.To
	}
	inside := map[string]string{
		"NOMAD_ALLOC_INTERFACE_" + label: status.InterfaceName, "NOMAD_ALLOC_IP_" + label: address,
		"NOMAD_ALLOC_ADDR_" + label: net.JoinHostPort(address, strconv.Itoa(port)),
	}
	if six := status.AddressIPv6; six != "" {
		inside["NOMAD_ALLOC_IP6_"+label], inside["NOMAD_ALLOC_ADDR6_"+label] = six, net.JoinHostPort(six, strconv.Itoa(port))
	}
	return inside
}

// Networks is a copy with what Nomad interpolates in them: the host's name, the resolver's configuration, and arguments for plugins.
func (e *Env) Networks(list []*network.Resource) []*network.Resource {
	out := make([]*network.Resource, len(list))
	for i, n := range list {
		c := new(*n)
		c.Hostname = e.Replace(n.Hostname)
		if n.DNS != nil {
			c.DNS = &network.DNSConfig{Servers: e.all(n.DNS.Servers), Searches: e.all(n.DNS.Searches), Options: e.all(n.DNS.Options)}
		}
		if n.CNI != nil {
			c.CNI = &network.CNIConfig{Args: map[string]string{}}
			for key, value := range n.CNI.Args {
				c.CNI.Args[key] = e.Replace(value)
			}
		}
		out[i] = c
	}
	return out
}

func (e *Env) all(list []string) (out []string) {
	for _, text := range list {
		out = append(out, e.Replace(text))
	}
	return out
}

// meta sets NOMAD_META_<key> and …_<KEY>; task over group over job.
func (e *Env) meta(in Input) {
	merged := map[string]string{}
	if in.Alloc.Job != nil {
		maps.Copy(merged, in.Alloc.Job.Meta)
	}
	maps.Copy(merged, in.Group.Meta)
	maps.Copy(merged, in.Task.Meta)
	for k, v := range merged {
		v = e.Replace(v)
		e.vars["NOMAD_META_"+cleanLabel(k)] = v
		e.vars["NOMAD_META_"+cleanLabel(strings.ToUpper(k))] = v
	}
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_]`)

// cleanLabel makes a label fit for the name of a variable, which many shells allow only letters, digits and underscores
// in.
func cleanLabel(s string) string { return notWord.ReplaceAllString(s, "_") }

// cleanKey cleans only keys with a prefix of ours; others may be what a program wants.
func cleanKey(k string) string {
	for _, prefix := range []string{"NOMAD_ADDR_", "NOMAD_IP_", "NOMAD_PORT_", "NOMAD_HOST_PORT_", "NOMAD_META_"} {
		if strings.HasPrefix(k, prefix) {
			return cleanLabel(k)
		}
	}
	return k
}
