package nomad_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Nomad's own client knows the defaults: what it fills in, we fill in.
func TestDefaultsAreNomads(t *testing.T) {
	t.Parallel()
	cases := map[string]func(j *api.Job, g *api.TaskGroup, t *api.Task){
		"minimal": func(*api.Job, *api.TaskGroup, *api.Task) {},
		"update": func(j *api.Job, g *api.TaskGroup, _ *api.Task) {
			j.Update, g.Update = &api.UpdateStrategy{Canary: new(1)}, &api.UpdateStrategy{MaxParallel: new(3)}
		},
		"reschedule": func(j *api.Job, g *api.TaskGroup, _ *api.Task) {
			j.Reschedule = &api.ReschedulePolicy{Unlimited: new(true)}
			g.ReschedulePolicy = &api.ReschedulePolicy{Delay: new(7 * time.Second)}
		},
		"restart": func(_ *api.Job, g *api.TaskGroup, t *api.Task) {
			g.RestartPolicy, t.RestartPolicy = &api.RestartPolicy{Attempts: new(9)}, &api.RestartPolicy{Mode: new("delay")}
		},
		"migrate": func(j *api.Job, g *api.TaskGroup, _ *api.Task) {
			j.Migrate, g.Migrate = &api.MigrateStrategy{MaxParallel: new(3)}, &api.MigrateStrategy{HealthCheck: new("task_states")}
		},
		"periodic": func(j *api.Job, _ *api.TaskGroup, _ *api.Task) {
			j.Periodic = &api.PeriodicConfig{Spec: new("* * * * *")}
		},
		"disconnect": func(_ *api.Job, g *api.TaskGroup, _ *api.Task) {
			g.Disconnect = &api.DisconnectStrategy{LostAfter: new(time.Hour)}
		},
		"rich": func(_ *api.Job, g *api.TaskGroup, t *api.Task) {
			g.Affinities = []*api.Affinity{{LTarget: "${x}", RTarget: "y", Operand: "="}}
			g.Spreads = []*api.Spread{{Attribute: "${node.datacenter}"}}
			g.Networks = []*api.NetworkResource{{Mode: "host", DynamicPorts: []api.Port{{Label: "a"}}}}
			g.Volumes = map[string]*api.VolumeRequest{"v": {Type: "host", Source: "s"}}
			g.Scaling = &api.ScalingPolicy{Max: new(int64(5))}
			// The provider of a service that names none is another on purpose: there is no Consul here.
			g.Services = []*api.Service{{Name: "s", PortLabel: "a", Provider: "nomad"}, {PortLabel: "a", Provider: "nomad"}}
			t.Artifacts = []*api.TaskArtifact{{GetterSource: new("http://x/y")}}
			t.Templates = []*api.Template{
				{EmbeddedTmpl: new("x"), DestPath: new("local/x")},
				{EmbeddedTmpl: new("x"), DestPath: new("local/y"), ChangeMode: new("signal"), ChangeSignal: new("sighup")},
			}
			t.VolumeMounts = []*api.VolumeMount{{Volume: new("v"), Destination: new("/x")}}
			t.Resources = &api.Resources{Cores: new(1), Devices: []*api.RequestedDevice{{Name: "gpu"}}}
			t.LogConfig = &api.LogConfig{MaxFiles: new(2)}
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		for _, kind := range []string{"service", "batch"} {
			if kind == "batch" && (name == "update" || name == "migrate") {
				continue // refused
			}
			made := func() *api.Job {
				task := &api.Task{Name: "t", Driver: "docker"}
				g := &api.TaskGroup{Name: new("g"), Tasks: []*api.Task{task}}
				j := &api.Job{ID: new("x"), Type: &kind, Datacenters: []string{"*"}, NodePool: new("default"), TaskGroups: []*api.TaskGroup{g}}
				cases[name](j, g, task)
				return j
			}
			theirs := made()
			theirs.Canonicalize()
			ours := &drover.Job{}
			require.NoError(t, json.Unmarshal(marshalled(t, made()), ours))
			ours.Canonicalize()
			if d := cmp.Diff(given(t, theirs), given(t, ours)); d != "" {
				t.Errorf("%s %s (- Nomad + ours)\n%s", kind, name, d)
			}
		}
	}
}

func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// given is v as JSON has it, without what is empty.
func given(t *testing.T, v any) any {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal(marshalled(t, v), &tree))
	return withoutEmpty(tree)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if x = withoutEmpty(x); x != nil {
				out[k] = x
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
		if len(v) > 0 {
			return v
		}
		return nil
	case string:
		if v != "" {
			return v
		}
		return nil
	case float64:
		if v != 0 {
			return v
		}
		return nil
	case bool:
		if v {
			return v
		}
		return nil
	}
	return v
}
