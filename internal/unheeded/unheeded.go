package unheeded

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/references"
	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// Part is a part of a job that is not carried out here.
type Part struct {
	Path    string // of the field from the job, with dots, under the names of Nomad's API: "TaskGroups.Tasks.Vault"
	Refused bool   // a job with it is not registered; else who registers it is warned
	Why     string
}

// part is a field of T that is not carried out.
type part[T any] struct {
	name    string
	refused bool
	why     string
	given   func(*T) bool
}

const (
	noVault   = "Drover has no Vault integration: use templates or env"
	noConsul  = "Drover has no Consul integration"
	noMesh    = "Drover has no service mesh"
	noCSI     = "Drover has no CSI: use a host volume"
	oldNomad  = "Nomad does not heed it any more either"
	noMbits   = "networks are not scheduled by bandwidth"
	noDevice  = "as on Nomad, which only reports it: name the host_network of a port"
	byHealth  = "updates are paced by health: use min_healthy_time"
	oneResult = "the last result of a check decides"
)

// The tables of what is not carried out, by the block that it stands in. What is in none of them works; a test holds
// these tables and Nomad's job against each other.
var (
	unheededOfJob = []part[drover.Job]{
		{"Multiregion", true, "register the job in each region", func(j *drover.Job) bool { return j.Multiregion != nil }},
		{"ConsulNamespace", false, noConsul, func(j *drover.Job) bool { return j.ConsulNamespace != "" }},
		{"VaultNamespace", false, noVault, func(j *drover.Job) bool { return j.VaultNamespace != "" }},
		{"Update.Stagger", false, byHealth, func(j *drover.Job) bool {
			return j.Update != nil && j.Update.Stagger != 0 && j.Update.Stagger != defaultStagger
		}},
	}
	unheededOfGroup = []part[drover.TaskGroup]{
		{"Consul", true, noConsul, func(g *drover.TaskGroup) bool { return len(g.Consul) > 0 }},
		{
			"Networks.Hostname", false, "tasks in containers and sandboxes have it; others, and containers in mode host, do not",
			func(g *drover.TaskGroup) bool {
				named := asks(g, func(n *network.Resource) bool { return n.Hostname != "" })
				return named && slices.ContainsFunc(g.Tasks, func(t *drover.Task) bool {
					return exposed(t) || t != nil && (t.Driver == "docker" || t.Driver == "podman") && g.Networks[0].Mode == "host"
				})
			},
		},
		{"Networks.DNS", false, "tasks in containers and sandboxes have it; others do not", func(g *drover.TaskGroup) bool {
			return asks(g, func(n *network.Resource) bool { return n.DNS != nil }) && slices.ContainsFunc(g.Tasks, exposed)
		}},
		{"Update.Stagger", false, byHealth, func(g *drover.TaskGroup) bool {
			return g.Update != nil && g.Update.Stagger != 0 && g.Update.Stagger != defaultStagger
		}},
	}
	unheededOfTask = []part[drover.Task]{
		{"Vault", true, noVault, func(t *drover.Task) bool { return len(t.Vault) > 0 }},
		{"Consul", true, noConsul, func(t *drover.Task) bool { return len(t.Consul) > 0 }},
		{"CSIPluginConfig", true, "Drover has no CSI", func(t *drover.Task) bool { return len(t.CSIPluginConfig) > 0 }},
		{"Secrets", true, "secret providers are not asked: use templates or env", func(t *drover.Task) bool { return len(t.Secrets) > 0 }},
		{"Schedule", true, "tasks are not paused by a schedule: use a periodic job", func(t *drover.Task) bool { return len(t.Schedule) > 0 }},
		{"Kind", false, noMesh, func(t *drover.Task) bool { return t.Kind != "" }},
		{"ScalingPolicies", false, "a task's resources are not scaled", func(t *drover.Task) bool { return len(t.ScalingPolicies) > 0 }},
		{"Resources.NUMA", false, "tasks are not placed by the machine's NUMA nodes", func(t *drover.Task) bool {
			return t.Resources != nil && t.Resources.NUMA != nil && t.Resources.NUMA.Affinity != "" && t.Resources.NUMA.Affinity != "none"
		}},
		{"Resources.DiskMB", false, oldNomad + ": the group's ephemeral_disk counts", func(t *drover.Task) bool {
			return t.Resources != nil && t.Resources.DiskMB != 0
		}},
		{"Resources.IOPS", false, oldNomad, func(t *drover.Task) bool { return t.Resources != nil && t.Resources.IOPS != 0 }},
	}
	unheededOfNetwork = []part[network.Resource]{
		{"Device", false, noDevice, func(n *network.Resource) bool { return n.Device != "" }},
		{"CIDR", false, noDevice, func(n *network.Resource) bool { return n.CIDR != "" }},
		{"MBits", false, noMbits, func(n *network.Resource) bool { return n.MBits != 0 }},
	}
	unheededOfVolume = []part[drover.VolumeRequest]{
		{"MountOptions", true, noCSI, func(r *drover.VolumeRequest) bool { return len(r.MountOptions) > 0 }},
	}
	unheededOfMount = []part[drover.VolumeMount]{
		{"PropagationMode", false, "mounts are private", func(m *drover.VolumeMount) bool {
			return m.PropagationMode != "" && m.PropagationMode != "private"
		}},
		{"SELinuxLabel", false, "label the volume's folder itself", func(m *drover.VolumeMount) bool { return m.SELinuxLabel != "" }},
	}
	unheededOfArtifact = []part[drover.TaskArtifact]{
		{"GetterInsecure", false, "certificates are checked", func(a *drover.TaskArtifact) bool { return a.GetterInsecure }},
		{"Chown", false, "files are the agent's, and readable for all", func(a *drover.TaskArtifact) bool { return a.Chown }},
	}
	unheededOfTemplate = []part[drover.Template]{
		{"VaultGrace", false, oldNomad, func(t *drover.Template) bool { return t.VaultGrace != nil }},
	}
	unheededOfService = []part[service.Service]{
		{"Connect", true, noMesh, func(s *service.Service) bool { return len(s.Connect) > 0 }},
		{"Provider", false, noConsul + ": the service is not registered; use provider nomad", func(s *service.Service) bool {
			return s.Provider == service.ProviderConsul
		}},
		{"Cluster", false, noConsul, func(s *service.Service) bool { return s.Cluster != "" && s.Cluster != "default" }},
		{"Weights", false, noConsul, func(s *service.Service) bool { return len(s.Weights) > 0 }},
		{"Meta", false, noConsul, func(s *service.Service) bool { return len(s.Meta) > 0 }},
		{"CanaryMeta", false, noConsul, func(s *service.Service) bool { return len(s.CanaryMeta) > 0 }},
		{"EnableTagOverride", false, noConsul, func(s *service.Service) bool { return s.EnableTagOverride }},
		{"TaggedAddresses", false, noConsul, func(s *service.Service) bool { return len(s.TaggedAddresses) > 0 }},
		{"Identity", false, noConsul, func(s *service.Service) bool { return s.Identity != nil }},
		{"Kind", false, noConsul, func(s *service.Service) bool { return s.Kind != "" }},
	}
	unheededOfCheck = []part[servicecheck.Check]{
		{"Expose", false, noMesh, func(c *servicecheck.Check) bool { return c.Expose }},
		{"Advertise", false, noConsul, func(c *servicecheck.Check) bool { return c.Advertise != "" }},
		{"InitialStatus", false, "a check is pending until it was carried out", func(c *servicecheck.Check) bool {
			return c.InitialStatus != ""
		}},
		{"SuccessBeforePassing", false, oneResult, func(c *servicecheck.Check) bool { return c.SuccessBeforePassing != 0 }},
		{"FailuresBeforeCritical", false, oneResult, func(c *servicecheck.Check) bool { return c.FailuresBeforeCritical != 0 }},
		{"FailuresBeforeWarning", false, oneResult, func(c *servicecheck.Check) bool { return c.FailuresBeforeWarning != 0 }},
	}
)

// Key is a key of a driver's configuration that is taken and has no effect.
type Key struct {
	Driver, Name string
	Why          string
	given        func(value any) bool // nil: whenever it is there
}

const ownLogs = "the supervisor writes the logs, as far as the task's block logs says"

// KeysOfDrivers lists them. What a driver refuses, it says itself.
func KeysOfDrivers() []Key {
	return []Key{
		{"docker", "container_exists_attempts", "a name that is taken is waited for, however long that is", nil},
		{"docker", "healthchecks", "images' own checks are never made: give the task's services checks", notDisabled},
		{"docker", "logging", ownLogs, nil},
		{"podman", "logging", ownLogs, nil},
	}
}

// notDisabled reports whether a block, or one of several, does not say disable = true.
func notDisabled(value any) bool {
	switch block := value.(type) {
	case map[string]any:
		return block["disable"] != true && block["disable"] != "true"
	case []map[string]any:
		return slices.ContainsFunc(block, func(b map[string]any) bool { return notDisabled(b) })
	case []any:
		return slices.ContainsFunc(block, notDisabled)
	}
	return true
}

// keys calls f for each such key of a task.
func keys(f func(at, name string, refused bool, why string), at string, t *drover.Task) {
	for _, k := range KeysOfDrivers() {
		if value, there := t.Config[k.Name]; k.Driver == t.Driver && there && value != nil && (k.given == nil || k.given(value)) {
			f(at+".Config", k.Name, false, k.Why)
		}
	}
}

// defaultStagger is what jobs have that say nothing.
const defaultStagger = 30 * time.Second

// asks reports whether the group's network says such a thing.
func asks(g *drover.TaskGroup, says func(*network.Resource) bool) bool {
	return len(g.Networks) > 0 && g.Networks[0] != nil && says(g.Networks[0])
}

// exposed reports whether the task is in no container or sandbox that is given a name and name servers.
func exposed(t *drover.Task) bool {
	return t != nil && slices.Contains([]string{"raw_exec", "qemu", "mock_driver", "fake"}, t.Driver)
}

// All lists what is not carried out of a job, for documents and tests. A path of a block that stands in several places is
// listed for each.
func All() (out []Part) {
	add(&out, "", unheededOfJob)
	add(&out, "TaskGroups", unheededOfGroup)
	add(&out, "TaskGroups.Networks", unheededOfNetwork)
	add(&out, "TaskGroups.Volumes", unheededOfVolume)
	add(&out, "TaskGroups.Services", unheededOfService)
	add(&out, "TaskGroups.Services.Checks", unheededOfCheck)
	add(&out, "TaskGroups.Tasks", unheededOfTask)
	add(&out, "TaskGroups.Tasks.Resources.Networks", unheededOfNetwork)
	add(&out, "TaskGroups.Tasks.VolumeMounts", unheededOfMount)
	add(&out, "TaskGroups.Tasks.Artifacts", unheededOfArtifact)
	add(&out, "TaskGroups.Tasks.Templates", unheededOfTemplate)
	add(&out, "TaskGroups.Tasks.Services", unheededOfService)
	add(&out, "TaskGroups.Tasks.Services.Checks", unheededOfCheck)
	return out
}

func add[T any](out *[]Part, block string, table []part[T]) {
	for _, p := range table {
		path := p.name
		if block != "" {
			path = block + "." + p.name
		}
		*out = append(*out, Part{path, p.refused, p.why})
	}
}

// each calls f for each part of the job that is given and not carried out, with the path of its block.
func each(j *drover.Job, f func(at, name string, refused bool, why string)) {
	seek(f, "job", j, unheededOfJob)
	for i, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		at := fmt.Sprintf("job.group[%s]", called(g.Name, i))
		seek(f, at, g, unheededOfGroup)
		seekAll(f, at+".Networks", g.Networks, unheededOfNetwork)
		for name, r := range g.Volumes {
			seek(f, fmt.Sprintf("%s.volume[%s]", at, name), r, unheededOfVolume)
		}
		seekServices(f, at, g.Services)
		for k, t := range g.Tasks {
			if t == nil {
				continue
			}
			at := fmt.Sprintf("%s.task[%s]", at, called(t.Name, k))
			seek(f, at, t, unheededOfTask)
			keys(f, at, t)
			if t.Resources != nil {
				seekAll(f, at+".Resources.Networks", t.Resources.Networks, unheededOfNetwork)
			}
			seekAll(f, at+".VolumeMounts", t.VolumeMounts, unheededOfMount)
			seekAll(f, at+".Artifacts", t.Artifacts, unheededOfArtifact)
			seekAll(f, at+".Templates", t.Templates, unheededOfTemplate)
			seekServices(f, at, t.Services)
		}
	}
}

func seekServices(f func(at, name string, refused bool, why string), at string, list []*service.Service) {
	for i, s := range list {
		if s != nil {
			at := fmt.Sprintf("%s.service[%s]", at, called(s.Name, i))
			seek(f, at, s, unheededOfService)
			seekAll(f, at+".Checks", servicecheck.Of(s), unheededOfCheck)
		}
	}
}

func seekAll[T any](f func(at, name string, refused bool, why string), at string, list []*T, table []part[T]) {
	for i, v := range list {
		seek(f, fmt.Sprintf("%s[%d]", at, i), v, table)
	}
}

func seek[T any](f func(at, name string, refused bool, why string), at string, v *T, table []part[T]) {
	if v == nil {
		return
	}
	for _, p := range table {
		if p.given(v) {
			f(at, p.name, p.refused, p.why)
		}
	}
}

// Refused returns an error for each part that a job has and nobody would carry out.
func Refused(j *drover.Job) (errs []error) {
	each(j, func(at, name string, refused bool, why string) {
		if refused {
			errs = append(errs, fmt.Errorf("%s.%s: is not supported: %s", at, name, why))
		}
	})
	return errs
}

// Warnings says what of the job is taken and has no effect, or not the one that its author may think of, a sentence each.
// Who registers the job is told.
func Warnings(j *drover.Job) (out []string) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil {
				out = append(out, unresolvable(t, fmt.Sprintf("task %q", t.Name))...)
			}
		}
	}
	var rest []string
	each(j, func(at, name string, refused bool, why string) {
		if !refused {
			rest = append(rest, fmt.Sprintf("%s.%s has no effect: %s", at, name, why))
		}
	})
	slices.Sort(rest)
	return append(out, rest...)
}

// Forget forgets what is read only to be warned of, so that it is nowhere or everywhere.
func Forget(j *drover.Job) {
	services := func(list []*service.Service) {
		for _, s := range list {
			if s != nil {
				s.EnableTagOverride, s.TaggedAddresses, s.Identity, s.Kind = false, nil, nil, ""
			}
		}
	}
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		services(g.Services)
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			services(t.Services)
		}
	}
}

// unresolvable says which references of the task no node can resolve, a sentence each: they stay as they are written.
func unresolvable(t *drover.Task, at string) (out []string) {
	look := func(at, text string) {
		for _, ref := range references.In(text) {
			if root := references.Foreign(ref); root != "" {
				out = append(out, fmt.Sprintf("%s: ${%s} stays as it is: there is no %q; known are attr, node, meta, env and NOMAD_…", at, ref, root))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Env)) {
		look(at+": env "+key, t.Env[key])
	}
	for _, key := range slices.Sorted(maps.Keys(t.Meta)) {
		look(at+": meta "+key, t.Meta[key])
	}
	texts(at+": config", t.Config, look)
	return out
}

// texts calls f with each text in a driver's configuration, and where it stands.
func texts(at string, value any, f func(at, text string)) {
	switch value := value.(type) {
	case string:
		f(at, value)
	case []any:
		for _, one := range value {
			texts(at, one, f)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			texts(at+"."+key, value[key], f)
		}
	}
}

// called is how a part of the job is called: by its name, or by its place in the list if it has none.
func called(name string, i int) string {
	if name == "" {
		return strconv.Itoa(i)
	}
	return name
}
