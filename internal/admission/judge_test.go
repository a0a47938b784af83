package admission

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
)

// jobOf is a job of one task whose configuration is JSON.
func jobOf(t *testing.T, driver, config string) *drover.Job {
	t.Helper()
	task := &drover.Task{Name: "t", Driver: driver}
	require.NoError(t, json.Unmarshal([]byte(config), &task.Config))
	return &drover.Job{ID: "j", Namespace: "web", TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{task}}}}
}

func judged(t *testing.T, r drover.AdmissionRule, j *drover.Job, by *Submitter) []drover.AdmissionVerdict {
	t.Helper()
	r.Name = "r"
	require.NoError(t, Complete(&r))
	return Compile([]*drover.AdmissionRule{&r}, nil).Judge(j, by, nil)
}

// TestConfigurations: what tasks ask for is seen however it is written, and what is not known counts as everything.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	const privileged, paths, registry = `Privileged == true`, `any HostPaths as p { p not matches "^/srv(/|$)" }`, `Registry != "ghcr.io"`
	for _, c := range []struct {
		driver, config, when string
		against              bool
	}{
		{"docker", `{}`, privileged, false},
		{"docker", `{"privileged": true}`, privileged, true},
		{"docker", `{"privileged": "true"}`, privileged, true},
		{"docker", `{"privileged": "false"}`, privileged, false},
		{"docker", `{"privileged": "${meta.p}"}`, privileged, true},
		{"docker", `{"${meta.key}": true}`, privileged, true},
		{"docker", `{"privileged": 1}`, privileged, true},
		{"raw_exec", `{"privileged": "${meta.p}"}`, `Driver == "docker" and ` + privileged, false},
		{"docker", `{"volumes": ["/srv/a:/a", "local:/b"]}`, paths, false},
		{"docker", `{"volumes": ["/srv/../etc:/a"]}`, paths, true},
		{"docker", `{"volumes": ["/etc:/a:ro"]}`, paths, true},
		{"docker", `{"volumes": ["${meta.v}:/a"]}`, paths, true},
		{"docker", `{"volumes": "/etc:/a"}`, paths, true},
		{"docker", `{"mounts": [{"type": "bind", "source": "/etc", "target": "/a"}]}`, paths, true},
		{"docker", `{"mount": {"type": "bind", "source": "/etc", "target": "/a"}}`, paths, true},
		{"docker", `{"mount": [{"source": "${meta.x}", "target": "/a"}]}`, paths, true},
		{"docker", `{"mount": [{"${meta.x}": "/etc", "target": "/a"}]}`, paths, true},
		{"docker", `{"mount": ["x"]}`, paths, true},
		{"docker", `{"mounts": [{"source": "data", "target": "/a"}]}`, paths, false},
		{
			"docker", `{"mounts": [{"source": "data", "volume_options": [{"driver_config": [{"name": "local", "options":
				{"o": "bind", "device": "/etc"}}]}]}]}`, paths, true,
		},
		{"docker", `{"devices": [{"host_path": "/dev/kmsg"}]}`, paths, true},
		{"sandbox", `{"mounts": [{"source": "/etc", "target": "/a"}]}`, paths, true},
		{"docker", `{"image": "ghcr.io/a/b:1"}`, registry, false},
		{"docker", `{"image": "python:3"}`, registry, true},
		{"docker", `{"image": "python:3"}`, `Registry == "docker.io" and Repository == "library/python" and Digest is empty`, true},
		{"docker", `{"image": "ghcr.io/a/b@sha256:` + strings.Repeat("a", 64) + `"}`, `Digest matches "^sha256:a"`, true},
		{"docker", `{"image": "ghcr.io/a/b:1", "load": "evil.tar"}`, registry, true},
		{"docker", `{"image": "${meta.image}"}`, registry, true},
		{"docker", `{"image": "ghcr.io/${meta.image}"}`, registry, true},
		{"docker", `{"image": 7}`, registry, true},
		{"sandbox", `{}`, `Registry == "host" and Image == "host"`, true},
		{"raw_exec", `{}`, `Image is empty and Registry is empty`, true},
		{"docker", `{"network_mode": "host"}`, `"host" in NetworkModes`, true},
		{
			"docker", `{"pid_mode": "host", "ipc_mode": "private", "uts_mode": "container:x"}`,
			`"pid" in HostNamespaces and "ipc" not in HostNamespaces and "uts" in HostNamespaces`, true,
		},
		{"docker", `{"cap_add": ["CAP_SYS_ADMIN"]}`, `"sys_admin" in CapAdd`, true},
		{
			"docker", `{"security_opt": ["seccomp=unconfined"], "runtime": "runsc"}`,
			`"seccomp=unconfined" in SecurityOpts and Runtime == "runsc"`, true,
		},
		{"podman", `{"image": "docker://ghcr.io/a/b:1"}`, registry, false},
		{"podman", `{"image": "docker://evil.io/x"}`, `Registry == "evil.io"`, true},
		{"podman", `{"devices": ["/srv/a:/dev/b:rwm"]}`, paths, false},
		{"podman", `{"devices": ["/srv/a", "/dev/kmsg:/dev/b"]}`, paths, true},
		{"podman", `{"devices": ["${meta.x}"]}`, paths, true},
		{"podman", `{"devices": [7]}`, paths, true},
		{
			"podman", `{"apparmor_profile": "unconfined", "selinux_opts": ["disable"], "userns": "host"}`,
			`"apparmor=unconfined" in SecurityOpts and "label=disable" in SecurityOpts and "user" in HostNamespaces`, true,
		},
		{"qemu", `{"image_path": "/etc/disk.img"}`, paths, true},
		{"qemu", `{"image_path": "/local/../etc/disk.img"}`, paths, true},
		{"qemu", `{"image_path": "/local/disk.img"}`, `HostPaths is empty`, true},
		{"qemu", `{"image_path": "local/disk.img"}`, `HostPaths is empty`, true},
		{"docker", `{"cap_add": [7]}`, `"sys_admin" in CapAdd`, true},
	} {
		got := judged(t, drover.AdmissionRule{When: c.when}, jobOf(t, c.driver, c.config), nil)
		require.Equal(t, c.against, len(got) > 0, "%s %s of %s: %v", c.driver, c.config, c.when, got)
	}
}

// TestVerdicts: a verdict says which rule is against which task and why, and what of the job itself and its groups counts.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	j := jobOf(t, "docker", `{"image": "${meta.image}"}`)
	j.Meta, j.TaskGroups[0].Meta = map[string]string{"team": "a", "k": "1"}, map[string]string{"k": "2"}
	j.TaskGroups[0].Count = new(3)
	j.TaskGroups[0].Networks = []*network.Resource{{ReservedPorts: []network.Port{{Label: "http", Value: 80}}}}
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"v": {Type: "host", Source: "data"}, "w": {Type: "host", Source: "other"}}
	task := j.TaskGroups[0].Tasks[0]
	task.VolumeMounts = []*drover.VolumeMount{{Volume: "v"}}
	task.Resources = &drover.Resources{CPU: 100, MemoryMB: 9000, Devices: []*drover.RequestedDevice{{Name: "nvidia/gpu"}}}
	task.Artifacts = []*drover.TaskArtifact{{GetterSource: "https://example.com/x"}}

	got := judged(t, drover.AdmissionRule{Max: map[string]int64{"MemoryMB": 8192, "CPU": 100}, Message: "ask for less"}, j, nil)
	require.Equal(t, []drover.AdmissionVerdict{{
		Rule: "r", Level: "enforce", Group: "g", Task: "t", Message: "ask for less", Reason: "MemoryMB is 9000, the most is 8192",
	}}, got)
	got = judged(t, drover.AdmissionRule{When: `Driver == "docker" and Registry != "ghcr.io"`, Level: "warn"}, j, nil)
	require.Equal(t, `Driver is "docker"; Registry is not known before the task starts ("${meta.image}")`, got[0].Reason)
	require.Empty(t, judged(t, drover.AdmissionRule{When: `Driver == "sandbox"`, Max: map[string]int64{"MemoryMB": 1}}, j, nil))
	require.Empty(t, judged(t, drover.AdmissionRule{When: `Driver == "docker"`, Max: map[string]int64{"MemoryMB": 9000}}, j, nil))
	for _, when := range []string{
		`Meta.team == "a" and Meta.k == "2" and Meta["none"] is empty`, `Count == 3`, `"host" in NetworkModes and 80 in StaticPorts`,
		`"data" in HostVolumes and "other" not in HostVolumes`, `"nvidia/gpu" in Devices`, `MemoryMaxMB == 9000`,
		`any Artifacts as a { a matches "^https://example" }`, `JobID == "j" and Namespace == "web" and Group == "g" and Task == "t"`,
	} {
		require.Len(t, judged(t, drover.AdmissionRule{When: when}, j, nil), 1, when)
	}
	task.Resources.MemoryMaxMB = -1
	require.Len(t, judged(t, drover.AdmissionRule{Max: map[string]int64{"MemoryMaxMB": 1 << 20}}, j, nil), 1, "no limit is over every limit")

	many := jobOf(t, "docker", `{}`)
	for i := range 2000 {
		many.TaskGroups[0].Tasks[0].Artifacts = append(many.TaskGroups[0].Tasks[0].Artifacts,
			&drover.TaskArtifact{GetterSource: fmt.Sprintf("https://example.com/%d", i)})
	}
	require.Len(t, judged(t, drover.AdmissionRule{When: `"x" in Artifacts`}, many, nil), 1, "a list beyond bounds may hold anything")
}

// TestWhomRulesConcern: a rule is for its namespaces, and one about tokens for who asks with one.
func TestWhomRulesConcern(t *testing.T) {
	t.Parallel()
	j := jobOf(t, "docker", `{}`)
	for glob, want := range map[string]int{"web": 1, "w*": 1, "*": 1, "other": 0, "web-*": 0} {
		require.Len(t, judged(t, drover.AdmissionRule{When: `Task != ""`, Namespaces: []string{"none", glob}}, j, nil), want, glob)
	}
	mine := drover.AdmissionRule{When: `"ci" in TokenPolicies and TokenType == "client" and Driver == "docker"`}
	require.Empty(t, judged(t, mine, j, nil), "a launch at its time was judged when the job was registered")
	require.Empty(t, judged(t, mine, j, &Submitter{Type: "management"}))
	require.Len(t, judged(t, mine, j, &Submitter{Type: "client", Policies: []string{"x", "ci"}}), 1)
}

// TestRulesThatCannotBeRead are against everything: another version of the program may have stored them.
func TestRulesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	set := Compile([]*drover.AdmissionRule{{Name: "later", Level: "enforce", When: `Future == true`, Namespaces: []string{"web"}}}, nil)
	got := set.Judge(jobOf(t, "docker", `{}`), nil, nil)
	require.Len(t, got, 1)
	require.Equal(t, `the rule cannot be read: 1:1: "Future" is no field of a task`, got[0].Reason)
}

// TestRulesAreChecked: what cannot be meant is refused with the field.
func TestRulesAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    drover.AdmissionRule
		want string
	}{
		{drover.AdmissionRule{Name: "a b"}, `invalid name "a b"`},
		{drover.AdmissionRule{Name: "r"}, "it has neither When nor Max"},
		{drover.AdmissionRule{Name: "r", When: `Task == "x"`, Level: "deny"}, `Level: "deny" is none of enforce, warn, dry-run`},
		{drover.AdmissionRule{Name: "r", When: `Task == "x"`, Namespaces: []string{"a b"}}, `Namespaces: "a b" is no name`},
		{drover.AdmissionRule{Name: "r", When: `Task == "x"`, Namespaces: make([]string, 65)}, "Namespaces has 65 entries"},
		{drover.AdmissionRule{Name: "r", When: `Task == "x"`, Message: strings.Repeat("x", 513)}, "at most 512 bytes"},
		{drover.AdmissionRule{Name: "r", Max: map[string]int64{"Memory": 1}}, `Max: "Memory" is none of a task's numbers Priority, Count`},
		{drover.AdmissionRule{Name: "r", Max: map[string]int64{"Driver": 1}}, `Max: "Driver" is none of a task's numbers`},
		{drover.AdmissionRule{Name: "r", Max: map[string]int64{"CPU": -1}}, "Max: CPU must not be negative, got -1"},
		{drover.AdmissionRule{Name: "r", When: "Driver ="}, `admission rule "r": When: 1:`},
	} {
		err := Complete(&c.r)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

// TestFieldsAreDescribed: people find every field in the documentation.
func TestFieldsAreDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/admission.md")
	require.NoError(t, err)
	for f := range viewType.Fields() {
		if f.IsExported() {
			require.Contains(t, string(text), "`"+f.Name+"`")
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	var rules []*drover.AdmissionRule
	for i := range 100 {
		rules = append(rules, &drover.AdmissionRule{
			Name: fmt.Sprint(i), When: `Driver == "docker" and (Privileged == true or (any HostPaths as p { p not matches "^/srv/" }))`,
		})
	}
	set := Compile(rules, nil)
	j := &drover.Job{Namespace: "default", TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{
		Name: "t", Driver: "docker", Config: map[string]any{"image": "ghcr.io/a/b:1", "volumes": []any{"/srv/a:/a", "/srv/b:/b"}},
	}}}}}
	for b.Loop() {
		if len(set.Judge(j, nil, nil)) > 0 {
			b.Fatal("no rule is against it")
		}
	}
}

// What is behind a volume is asked for where a rule wants to know it. Then all that there is of its name counts, and what there
// is not yet may be anything.
func TestWhatIsBehindVolumes(t *testing.T) {
	t.Parallel()
	j := jobOf(t, "docker", `{}`)
	j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"v": {Type: "host", Source: "data"}, "unused": {Type: "host", Source: "other"}}
	j.TaskGroups[0].Tasks[0].VolumeMounts = []*drover.VolumeMount{{Volume: "v"}}
	for _, c := range []struct {
		when    string
		there   []Volume
		against bool
	}{
		{`any HostVolumePaths as p { p matches "^/etc" }`, []Volume{{Path: "/srv/a"}, {Path: "/srv/../etc"}}, true},
		{`any HostVolumePaths as p { p matches "^/etc" }`, []Volume{{Path: "/srv/a"}, {Path: "/srv/b"}}, false},
		{`any HostVolumePaths as p { p matches "^/etc" }`, []Volume{{Path: "/srv/a"}, {Plugin: "mkdir"}}, true},
		{`any HostVolumePaths as p { p matches "^/etc" }`, nil, true},
		{`"mkdir" in HostVolumePlugins`, []Volume{{Path: "/srv/a"}}, false},
		{`"mkdir" in HostVolumePlugins`, []Volume{{Path: "/srv/a", Plugin: "mkdir"}}, true},
		{`"other" in HostVolumes`, nil, false},
	} {
		r := drover.AdmissionRule{Name: "r", When: c.when}
		require.NoError(t, Complete(&r))
		var asked []string
		got := Compile([]*drover.AdmissionRule{&r}, nil).Judge(j, nil, func(_ *drover.Job, r *drover.VolumeRequest) []Volume {
			asked = append(asked, r.Source)
			return c.there
		})
		require.Equal(t, c.against, len(got) > 0, "%s %v", c.when, c.there)
		if strings.Contains(c.when, "HostVolumes") {
			require.Empty(t, asked)
		} else {
			require.Equal(t, []string{"data"}, asked)
		}
	}
}
