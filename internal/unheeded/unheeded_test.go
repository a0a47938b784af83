package unheeded

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
	"github.com/drover-project/drover/workload"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	j := &drover.Job{TaskGroups: []*drover.TaskGroup{nil, {
		Name: "g", Services: []*service.Service{{}, {}},
		Tasks: []*drover.Task{
			nil,
			{Name: "a", Services: []*service.Service{{}}, Kind: "k"},
			{Name: "b", Kind: "k", Env: map[string]string{"A": "${nodes.x} ${FOO} ${attr.x}"}},
			{Name: "d", Driver: "docker", Config: map[string]any{
				"logging": map[string]any{"type": "json-file"}, "healthchecks": []map[string]any{{"disable": true}}, "container_exists_attempts": 3,
			}},
			{Name: "e", Driver: "podman", Config: map[string]any{"healthchecks": map[string]any{"disable": false}, "logging": nil}},
			{Name: "f", Driver: "docker", Config: map[string]any{"healthchecks": []any{map[string]any{}}}},
			{Name: "c", Config: map[string]any{"args": []any{"${nope.y}", "${X:-1.0}"}}},
		},
	}}}
	require.Equal(t, []string{
		`task "b": env A: ${nodes.x} stays as it is: there is no "nodes"; known are attr, node, meta, env and NOMAD_…`,
		`task "c": config.args: ${nope.y} stays as it is: there is no "nope"; known are attr, node, meta, env and NOMAD_…`,
		"job.group[g].task[a].Kind has no effect: " + noMesh,
		"job.group[g].task[b].Kind has no effect: " + noMesh,
		"job.group[g].task[d].Config.container_exists_attempts has no effect: a name that is taken is waited for, however long that is",
		"job.group[g].task[d].Config.logging has no effect: " + ownLogs,
		"job.group[g].task[f].Config.healthchecks has no effect: images' own checks are never made: give the task's services checks",
	}, Warnings(j))
}

// whole is a valid job with one of each block.
func whole() *drover.Job {
	j := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{
		Name: "g", Networks: []*network.Resource{{DynamicPorts: []network.Port{{Label: "http"}}}},
		Services: []*service.Service{{Name: "web", PortLabel: "http"}}, Tasks: []*drover.Task{{Name: "t", Driver: "fake"}},
	}}}
	j.Canonicalize()
	g := j.TaskGroups[0]
	g.Services[0].Checks = []map[string]any{{"Type": "tcp"}}
	g.Volumes = map[string]*drover.VolumeRequest{"v": {Type: "host", Source: "s"}}
	t := g.Tasks[0]
	t.Services = []*service.Service{{Name: "s", Checks: []map[string]any{{"Type": "tcp"}}}}
	t.VolumeMounts = []*drover.VolumeMount{{Volume: "v", Destination: "/v"}}
	t.Artifacts = []*drover.TaskArtifact{{GetterSource: "http://x"}}
	t.Templates = []*drover.Template{{EmbeddedTmpl: "x", DestPath: "x"}}
	t.Identities = []*workload.Identity{{Name: "i"}}
	t.Resources.Networks = []*network.Resource{{}}
	j.Canonicalize()
	return j
}

// What is in a table is said when it is given, and nothing is said of a job that has none of it.
func TestUnheededPartsAreSaid(t *testing.T) {
	t.Parallel()
	require.NoError(t, whole().Validate())
	require.Empty(t, Refused(whole()))
	require.Empty(t, Warnings(whole()))
	for _, u := range All() {
		j := whole()
		give(t, reflect.ValueOf(j), strings.Split(u.Path, "."))
		j.Canonicalize()
		name := u.Path[strings.LastIndexByte(u.Path, '.')+1:]
		if u.Refused {
			require.ErrorContains(t, errors.Join(Refused(j)...), name+": is not supported: "+u.Why, u.Path)
			continue
		}
		require.NoError(t, j.Validate(), u.Path)
		require.Contains(t, strings.Join(Warnings(j), "\n"), name+" has no effect: "+u.Why, u.Path)
	}
}

// give sets the field at the end of the path to something.
func give(t *testing.T, v reflect.Value, path []string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		give(t, v.Elem(), path)
	case reflect.Slice:
		if len(path) == 0 || v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		if len(path) > 0 {
			give(t, v.Index(0), path)
		}
	case reflect.Map:
		if len(path) == 0 {
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(v.Type().Elem()))
			return
		}
		if len(path) == 1 && v.Type().Elem().Kind() == reflect.Interface { // a check
			c := reflect.New(reflect.TypeFor[servicecheck.Check]()).Elem()
			give(t, c, path)
			v.SetMapIndex(reflect.ValueOf(path[0]), c.FieldByName(path[0]))
			return
		}
		give(t, v.MapIndex(v.MapKeys()[0]), path)
	case reflect.Struct:
		if len(path) == 0 { // all that the block can have
			for i := range v.NumField() {
				give(t, v.Field(i), nil)
			}
			return
		}
		f := v.FieldByName(path[0])
		require.True(t, f.IsValid(), path)
		if only := map[string]string{"Provider": "consul"}[path[0]]; only != "" {
			f.SetString(only)
			return
		}
		if path[0] == "DNS" {
			f.Set(reflect.ValueOf(&network.DNSConfig{Servers: []string{"127.0.0.1"}}))
			return
		}
		give(t, f, path[1:])
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(7)
	default:
		v.SetInt(7)
	}
}
