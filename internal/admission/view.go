package admission

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/tenant"
)

// View is what rules see of a task: its exported fields. docs/admission.md describes them.
type View struct {
	Namespace     string
	JobID         string
	JobType       string
	NodePool      string
	Datacenters   []string
	Priority      int
	Periodic      bool
	Parameterized bool
	Meta          map[string]string

	Group        string
	Count        int
	WarmPool     bool
	NetworkModes []string
	StaticPorts  []string
	DiskMB       int

	Task        string
	Driver      string
	User        string
	Image       string
	Registry    string
	Repository  string
	Digest      string
	Runtime     string
	Privileged  bool
	HostPaths   []string
	HostVolumes []string
	// What is behind the host volumes, where a rule asks.
	HostVolumePaths   []string
	HostVolumePlugins []string
	HostNamespaces    []string
	CapAdd            []string
	SecurityOpts      []string
	Artifacts         []string
	Devices           []string
	CPU               int
	Cores             int
	MemoryMB          int
	MemoryMaxMB       int

	TokenType     string
	TokenName     string
	TokenPolicies []string
	TokenRoles    []string

	unknown map[string]string // what only the node will know: an example of each such field's text
}

// maxList bounds a list of a view, so that no job makes rules slow. What is longer may hold anything.
const maxList = 1000

// host is the network mode of groups that name none.
const host = "host"

// each calls see for every task of a canonical job.
func each(j *drover.Job, by *Submitter, volumes Volumes, see func(v *View)) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil {
				see(viewOf(j, g, t, by, volumes))
			}
		}
	}
}

func viewOf(j *drover.Job, g *drover.TaskGroup, t *drover.Task, by *Submitter, volumes Volumes) *View {
	v := &View{
		Namespace: j.Namespace, JobID: cmp.Or(j.ParentID, j.ID), JobType: j.Type, NodePool: j.NodePool,
		Datacenters: j.Datacenters, Priority: j.Priority, Periodic: j.Periodical(), Parameterized: j.ParameterizedJob != nil,
		Meta:  map[string]string{},
		Group: g.Name, Count: optional.Value(g.Count), WarmPool: g.Pool != nil, Task: t.Name, Driver: t.Driver, User: t.User,
		unknown: map[string]string{},
	}
	for _, meta := range []map[string]string{j.Meta, g.Meta, t.Meta} {
		for key, text := range meta {
			v.Meta[key] = text
			v.known("Meta", key+text)
		}
	}
	if g.EphemeralDisk != nil {
		v.DiskMB = g.EphemeralDisk.SizeMB
	}
	v.known("User", t.User)
	v.resources(t.Resources)
	v.networks(g)
	v.volumes(j, g, t, volumes)
	for _, a := range t.Artifacts {
		if a != nil {
			v.add("Artifacts", &v.Artifacts, a.GetterSource)
		}
	}
	v.config(t)
	if by != nil {
		v.TokenType, v.TokenName, v.TokenPolicies, v.TokenRoles = by.Type, by.Name, by.Policies, by.Roles
	}
	for field, list := range v.lists() {
		if len(list) > maxList {
			v.unknown[field] = strconv.Itoa(len(list)) + " entries"
		}
	}
	return v
}

// lists are those that a job can make long.
func (v *View) lists() map[string][]string {
	return map[string][]string{
		"HostPaths": v.HostPaths, "HostVolumes": v.HostVolumes, "HostVolumePaths": v.HostVolumePaths,
		"HostVolumePlugins": v.HostVolumePlugins, "NetworkModes": v.NetworkModes, "StaticPorts": v.StaticPorts,
		"CapAdd": v.CapAdd, "SecurityOpts": v.SecurityOpts, "Artifacts": v.Artifacts, "Devices": v.Devices, "Datacenters": v.Datacenters,
	}
}

// known notes that the field is not, if the node replaces something in the text. It reports whether the text is what counts.
func (v *View) known(field, text string) bool {
	if strings.Contains(text, "${") {
		v.unknown[field] = text
		return false
	}
	return true
}

// add appends a text to the field's list.
func (v *View) add(field string, list *[]string, text string) {
	if v.known(field, text) && !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

func (v *View) resources(r *drover.Resources) {
	if r == nil {
		return
	}
	v.CPU, v.Cores, v.MemoryMB = r.CPU, r.Cores, r.MemoryMB
	if v.MemoryMaxMB = max(r.MemoryMaxMB, r.MemoryMB); r.MemoryMaxMB < 0 { // no limit
		v.MemoryMaxMB = math.MaxInt32
	}
	for _, d := range r.Devices {
		if d != nil {
			v.add("Devices", &v.Devices, d.Name)
		}
	}
}

func (v *View) networks(g *drover.TaskGroup) {
	for _, n := range g.Networks {
		if n == nil {
			continue
		}
		mode := n.Mode
		if mode == "" {
			mode = host
		}
		v.add("NetworkModes", &v.NetworkModes, mode)
		for _, p := range n.ReservedPorts {
			v.add("StaticPorts", &v.StaticPorts, strconv.Itoa(p.Value))
		}
	}
}

// volumes are the group's that the task mounts.
func (v *View) volumes(j *drover.Job, g *drover.TaskGroup, t *drover.Task, find Volumes) {
	for _, m := range t.VolumeMounts {
		if m == nil {
			continue
		}
		r := g.Volumes[m.Volume]
		if r == nil {
			continue
		}
		v.add("HostVolumes", &v.HostVolumes, r.Source)
		if find == nil {
			continue
		}
		behind := find(j, r)
		if len(behind) == 0 { // there is none yet: it may be made as anything
			v.unknown["HostVolumePaths"], v.unknown["HostVolumePlugins"] = r.Source, r.Source
		}
		for _, b := range behind {
			if b.Plugin != "" {
				v.add("HostVolumePlugins", &v.HostVolumePlugins, b.Plugin)
			}
			if b.Path == "" {
				v.unknown["HostVolumePaths"] = r.Source
				continue
			}
			v.add("HostVolumePaths", &v.HostVolumePaths, path.Clean(b.Path))
		}
	}
}

// ofConfig are the fields that a task's configuration decides.
var ofConfig = []string{ // a constant
	"Image", "Registry", "Repository", "Digest", "Runtime", "Privileged", "HostPaths", "HostNamespaces", "CapAdd", "SecurityOpts",
	"NetworkModes",
}

// config reads the task's configuration, whatever its driver is: an unknown driver's keys are taken for what they are called.
func (v *View) config(t *drover.Task) {
	if key := replacedKey(t.Config); key != "" {
		for _, field := range ofConfig {
			v.unknown[field] = key
		}
	}
	v.image(t)
	v.Runtime = v.text(t.Config, "runtime", "Runtime")
	v.flag(t.Config["privileged"])
	for _, name := range v.texts(t.Config["cap_add"], "CapAdd") {
		v.add("CapAdd", &v.CapAdd, strings.TrimPrefix(strings.ToLower(name), "cap_"))
	}
	for _, opt := range v.texts(t.Config["security_opt"], "SecurityOpts") {
		v.add("SecurityOpts", &v.SecurityOpts, opt)
	}
	if profile := v.text(t.Config, "apparmor_profile", "SecurityOpts"); profile != "" { // these two are podman's
		v.add("SecurityOpts", &v.SecurityOpts, "apparmor="+profile)
	}
	for _, opt := range v.texts(t.Config["selinux_opts"], "SecurityOpts") {
		v.add("SecurityOpts", &v.SecurityOpts, "label="+opt)
	}
	if mode := v.text(t.Config, "network_mode", "NetworkModes"); mode != "" {
		v.add("NetworkModes", &v.NetworkModes, mode)
	}
	for key, name := range map[string]string{
		"pid_mode": "pid", "ipc_mode": "ipc", "userns_mode": "user", "userns": "user", "uts_mode": "uts", "cgroupns": "cgroup",
	} {
		if mode := v.text(t.Config, key, "HostNamespaces"); mode == host || strings.HasPrefix(mode, "container:") {
			v.add("HostNamespaces", &v.HostNamespaces, name)
		}
	}
	slices.Sort(v.HostNamespaces)
	v.paths(t.Config)
}

// image says what the task's image is, in the words of a registry.
func (v *View) image(t *drover.Task) {
	v.Image = v.text(t.Config, "image", "Image")
	if t.Driver == "podman" {
		v.Image = strings.TrimPrefix(v.Image, "docker://")
	}
	if v.Image == "" && t.Driver == "sandbox" {
		v.Image = host
	}
	loaded := v.text(t.Config, "load", "Image") // an image of a file has no registry, whatever it is called
	if why, unsure := v.unknown["Image"]; unsure {
		v.unknown["Registry"], v.unknown["Repository"], v.unknown["Digest"] = why, why, why
		return
	}
	if v.Image == host && t.Driver == "sandbox" {
		v.Registry = host
	} else if loaded == "" {
		v.Registry, v.Repository, v.Digest = tenant.Image(v.Image)
	}
}

// text is the value of a key; what is no text is not known.
func (v *View) text(config map[string]any, key, field string) string {
	switch s := config[key].(type) {
	case nil:
	case string:
		if v.known(field, s) {
			return s
		}
	default:
		v.unknown[field] = key
	}
	return ""
}

// texts is a list of texts; what is none is not known.
func (v *View) texts(value any, field string) (out []string) {
	switch list := value.(type) {
	case nil:
	case []string:
		return list
	case []any:
		for _, e := range list {
			s, ok := e.(string)
			if !ok {
				v.unknown[field] = field
				continue
			}
			out = append(out, s)
		}
	default:
		v.unknown[field] = field
	}
	return out
}

// flag reads whether the task is privileged.
func (v *View) flag(value any) {
	switch p := value.(type) {
	case nil:
	case bool:
		v.Privileged = p
	case string:
		if v.Privileged = p == "true"; !v.Privileged && p != "false" {
			v.unknown["Privileged"] = p
		}
	default:
		v.unknown["Privileged"] = "privileged"
	}
}

// paths are what a task sees of the machine's files: what is below the task's own folder is not among them.
func (v *View) paths(config map[string]any) {
	const field = "HostPaths"
	see := func(source string) {
		if v.known(field, source) && path.IsAbs(source) {
			v.add(field, &v.HostPaths, path.Clean(source))
		}
	}
	for _, volume := range v.texts(config["volumes"], field) {
		if v.known(field, volume) {
			source, _, _ := strings.Cut(volume, ":")
			see(source)
		}
	}
	for _, key := range []string{"mounts", "mount"} {
		for _, m := range v.blocks(config[key]) {
			see(v.text(m, "source", field))
			for _, o := range v.blocks(m["volume_options"]) {
				for _, d := range v.blocks(o["driver_config"]) {
					for _, options := range v.blocks(d["options"]) {
						for name := range options {
							see(v.text(options, name, field))
						}
					}
				}
			}
		}
	}
	v.devices(config["devices"], see)
	if disk := v.text(config, "image_path", field); !inTask(disk) { // of a virtual machine
		see(disk)
	}
	slices.Sort(v.HostPaths)
}

// devices are blocks, or, as podman has them, host:container:permissions.
func (v *View) devices(value any, see func(source string)) {
	const field = "HostPaths"
	switch list := value.(type) {
	case []string:
		for _, text := range list {
			v.devices(text, see)
		}
	case []any:
		for _, one := range list {
			v.devices(one, see)
		}
	case string:
		if v.known(field, list) {
			source, _, _ := strings.Cut(list, ":")
			see(source)
		}
	default:
		for _, d := range v.blocks(value) {
			see(v.text(d, "host_path", field))
		}
	}
}

// inTask reports whether a path is in one of a task's own folders.
func inTask(name string) bool {
	top, _, below := strings.Cut(strings.TrimPrefix(path.Clean(name), "/"), "/")
	return below && path.IsAbs(name) && slices.Contains([]string{"alloc", "local", "secrets"}, top)
}

// blocks are a block, or several, as files and JSON have them; what is none may mount anything.
func (v *View) blocks(value any) (out []map[string]any) {
	switch b := value.(type) {
	case nil:
	case map[string]any:
		return []map[string]any{b}
	case []map[string]any:
		return b
	case []any:
		for _, e := range b {
			out = append(out, v.blocks(e)...)
		}
	case map[string]string:
		m := map[string]any{}
		for key, text := range b {
			m[key] = text
		}
		return []map[string]any{m}
	default:
		v.unknown["HostPaths"] = "mount"
	}
	return out
}

// replacedKey is a key of a configuration, or of its blocks, that the node would replace by another; "" if there is none.
func replacedKey(value any) string {
	switch in := value.(type) {
	case map[string]any:
		first := ""
		for key, below := range in {
			if !strings.Contains(key, "${") {
				key = replacedKey(below)
			}
			if key != "" && (first == "" || key < first) {
				first = key
			}
		}
		return first
	case []map[string]any:
		for _, e := range in {
			if key := replacedKey(e); key != "" {
				return key
			}
		}
	case []any:
		for _, e := range in {
			if key := replacedKey(e); key != "" {
				return key
			}
		}
	case map[string]string:
		for key := range in {
			if strings.Contains(key, "${") {
				return key
			}
		}
	}
	return ""
}
