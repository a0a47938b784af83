package drover

import (
	"fmt"
	"slices"
)

// Unheeded is a part of a job that is not carried out here.
type Unheeded struct {
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
	noVault    = "Drover has no Vault integration: use templates or env"
	noConsul   = "Drover has no Consul integration"
	noMesh     = "Drover has no service mesh"
	noCSI      = "Drover has no CSI: use a host volume"
	oldNomad   = "Nomad does not heed it any more either"
	noMbits    = "networks are not scheduled by bandwidth"
	noServices = "services are not registered or checked"
	noTokens   = "no tokens are made for workloads"
)

// The tables of what is not carried out, by the block that it stands in. What is in none of them works; a test holds
// these tables and Nomad's job against each other.
var (
	unheededOfJob = []part[Job]{
		{"Multiregion", true, "register the job in each region", func(j *Job) bool { return j.Multiregion != nil }},
		{"ConsulNamespace", false, noConsul, func(j *Job) bool { return j.ConsulNamespace != "" }},
		{"VaultNamespace", false, noVault, func(j *Job) bool { return j.VaultNamespace != "" }},
	}
	unheededOfGroup = []part[TaskGroup]{
		{"Services", false, noServices, func(g *TaskGroup) bool { return len(g.Services) > 0 }},
		{"Consul", true, noConsul, func(g *TaskGroup) bool { return len(g.Consul) > 0 }},
		{"EphemeralDisk.Migrate", false, "data is taken over on the same node only", func(g *TaskGroup) bool {
			return g.EphemeralDisk != nil && g.EphemeralDisk.Migrate
		}},
	}
	unheededOfTask = []part[Task]{
		{"Services", false, noServices, func(t *Task) bool { return len(t.Services) > 0 }},
		{"Vault", true, noVault, func(t *Task) bool { return len(t.Vault) > 0 }},
		{"Consul", true, noConsul, func(t *Task) bool { return len(t.Consul) > 0 }},
		{"CSIPluginConfig", true, "Drover has no CSI", func(t *Task) bool { return len(t.CSIPluginConfig) > 0 }},
		{"Secrets", true, "secret providers are not asked: use templates or env", func(t *Task) bool { return len(t.Secrets) > 0 }},
		{"Schedule", true, "tasks are not paused by a schedule: use a periodic job", func(t *Task) bool { return len(t.Schedule) > 0 }},
		{"Identity", false, noTokens, func(t *Task) bool { return t.Identity != nil }},
		{"Identities", false, noTokens, func(t *Task) bool { return len(t.Identities) > 0 }},
		{"Kind", false, noMesh, func(t *Task) bool { return t.Kind != "" }},
		{"ScalingPolicies", false, "a task's resources are not scaled", func(t *Task) bool { return len(t.ScalingPolicies) > 0 }},
		{"Resources.NUMA", false, "tasks are not placed by the machine's NUMA nodes", func(t *Task) bool {
			return t.Resources != nil && t.Resources.NUMA != nil && t.Resources.NUMA.Affinity != "" && t.Resources.NUMA.Affinity != "none"
		}},
		{"Resources.DiskMB", false, oldNomad + ": the group's ephemeral_disk counts", func(t *Task) bool {
			return t.Resources != nil && t.Resources.DiskMB != 0
		}},
		{"Resources.IOPS", false, oldNomad, func(t *Task) bool { return t.Resources != nil && t.Resources.IOPS != 0 }},
	}
	unheededOfNetwork = []part[NetworkResource]{
		{"MBits", false, noMbits, func(n *NetworkResource) bool { return n.MBits != 0 }},
		{"CNI", true, "Drover has no CNI: use mode bridge", func(n *NetworkResource) bool { return n.CNI != nil && len(n.CNI.Args) > 0 }},
	}
	unheededOfVolume = []part[VolumeRequest]{
		{"MountOptions", true, noCSI, func(r *VolumeRequest) bool { return len(r.MountOptions) > 0 }},
		{"Sticky", true, "an allocation's replacement goes to any node that has the volume", func(r *VolumeRequest) bool { return r.Sticky }},
		{"PerAlloc", true, "nodes are looked for by the volume's source alone: make a group for each volume", func(r *VolumeRequest) bool {
			return r.PerAlloc
		}},
		{"AccessMode", false, "a host volume takes all writers", func(r *VolumeRequest) bool { return r.AccessMode != "" }},
		{"AttachmentMode", false, "a host volume is a folder", func(r *VolumeRequest) bool { return r.AttachmentMode != "" }},
	}
	unheededOfMount = []part[VolumeMount]{
		{"PropagationMode", false, "mounts are private", func(m *VolumeMount) bool {
			return m.PropagationMode != "" && m.PropagationMode != "private"
		}},
		{"SELinuxLabel", false, "label the volume's folder itself", func(m *VolumeMount) bool { return m.SELinuxLabel != "" }},
	}
	unheededOfArtifact = []part[TaskArtifact]{
		{"GetterInsecure", false, "certificates are checked", func(a *TaskArtifact) bool { return a.GetterInsecure }},
		{"Chown", false, "files are the agent's, and readable for all", func(a *TaskArtifact) bool { return a.Chown }},
	}
	unheededOfTemplate = []part[Template]{
		{"VaultGrace", false, oldNomad, func(t *Template) bool { return t.VaultGrace != nil }},
	}
	unheededOfService = []part[Service]{
		{"Connect", true, noMesh, func(s *Service) bool { return len(s.Connect) > 0 }},
		{"EnableTagOverride", false, noConsul, func(s *Service) bool { return s.EnableTagOverride }},
		{"TaggedAddresses", false, noConsul, func(s *Service) bool { return len(s.TaggedAddresses) > 0 }},
		{"Identity", false, noConsul, func(s *Service) bool { return s.Identity != nil }},
		{"Kind", false, noConsul, func(s *Service) bool { return s.Kind != "" }},
	}
)

// AllUnheeded lists what is not carried out of a job, for documents and tests. A path of a block that stands in several places is
// listed for each.
func AllUnheeded() (out []Unheeded) {
	add(&out, "", unheededOfJob)
	add(&out, "TaskGroups", unheededOfGroup)
	add(&out, "TaskGroups.Networks", unheededOfNetwork)
	add(&out, "TaskGroups.Volumes", unheededOfVolume)
	add(&out, "TaskGroups.Services", unheededOfService)
	add(&out, "TaskGroups.Tasks", unheededOfTask)
	add(&out, "TaskGroups.Tasks.Resources.Networks", unheededOfNetwork)
	add(&out, "TaskGroups.Tasks.VolumeMounts", unheededOfMount)
	add(&out, "TaskGroups.Tasks.Artifacts", unheededOfArtifact)
	add(&out, "TaskGroups.Tasks.Templates", unheededOfTemplate)
	add(&out, "TaskGroups.Tasks.Services", unheededOfService)
	return out
}

func add[T any](out *[]Unheeded, block string, table []part[T]) {
	for _, p := range table {
		path := p.name
		if block != "" {
			path = block + "." + p.name
		}
		*out = append(*out, Unheeded{path, p.refused, p.why})
	}
}

// unheeded calls f for each part of the job that is given and not carried out, with the path of its block.
func (j *Job) unheeded(f func(at, name string, refused bool, why string)) {
	seek(f, "job", j, unheededOfJob)
	for i, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		at := fmt.Sprintf("job.group[%s]", nameOr(g.Name, i))
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
			at := fmt.Sprintf("%s.task[%s]", at, nameOr(t.Name, k))
			seek(f, at, t, unheededOfTask)
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

func seekServices(f func(at, name string, refused bool, why string), at string, list []*Service) {
	for i, s := range list {
		if s != nil {
			seek(f, fmt.Sprintf("%s.service[%s]", at, nameOr(s.Name, i)), s, unheededOfService)
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

// refuseUnheeded reports what the job has and nobody would carry out.
func (j *Job) refuseUnheeded(v *report) {
	j.unheeded(func(at, name string, refused bool, why string) {
		if refused {
			v.Addf(at+"."+name, "is not supported: %s", why)
		}
	})
}

// Warnings says what of the job is taken and has no effect, or not the one that its author may think of, a sentence each.
// Who registers the job is told.
func (j *Job) Warnings() (out []string) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil {
				out = append(out, t.unresolvable(fmt.Sprintf("task %q", t.Name))...)
			}
		}
	}
	var rest []string
	j.unheeded(func(at, name string, refused bool, why string) {
		if !refused {
			rest = append(rest, fmt.Sprintf("%s.%s has no effect: %s", at, name, why))
		}
	})
	slices.Sort(rest)
	return append(out, rest...)
}

// ForgetUnstored forgets what is read only to be warned of, so that it is nowhere or everywhere.
func (j *Job) ForgetUnstored() {
	services := func(list []*Service) {
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
			if t.Identity != nil {
				t.Identity.ExtraClaims = nil
			}
			for _, w := range t.Identities {
				if w != nil {
					w.ExtraClaims = nil
				}
			}
		}
	}
}
