package tenant

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/workload"
)

// usingJob is a job whose group has the network mode and whose tasks have the drivers.
func usingJob(pool, mode string, drivers ...string) *drover.Job {
	g := &drover.TaskGroup{Name: "g"}
	if mode != "none at all" {
		g.Networks = []*network.Resource{{Mode: mode}}
	}
	for _, d := range drivers {
		g.Tasks = append(g.Tasks, &drover.Task{Name: d, Driver: d})
	}
	return &drover.Job{ID: "j", NodePool: pool, TaskGroups: []*drover.TaskGroup{g, nil}}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	ns := &tenancy.Namespace{
		Name: "dev",
		Capabilities: &tenancy.NamespaceCapabilities{
			EnabledTaskDrivers: []string{"docker", "sandbox"}, DisabledTaskDrivers: []string{"docker"},
			DisabledNetworkModes: []string{"host"},
		},
		NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Default: "prod", Allowed: []string{"b-*-x"}},
		RequiredExtraClaims:   map[string]string{"team": "dev"},
		OptionalExtraClaims:   map[string]string{"pool": "${node.pool}"},
	}
	claiming := usingJob("prod", "bridge", "sandbox")
	claiming.TaskGroups[0].Tasks[0].Identity = &workload.Identity{ExtraClaims: []string{"team", "pool", "cost"}}
	docker := usingJob("prod", "bridge", "sandbox")
	docker.TaskGroups[0].Tasks[0].Config = map[string]any{"network_mode": "host"}
	for _, c := range []struct {
		job  *drover.Job
		want string
	}{
		{usingJob("prod", "bridge", "sandbox"), ""},
		{usingJob("b--x", "none at all", "sandbox"), ""},
		{usingJob("b-x", "bridge"), `job.NodePool: namespace "dev" does not allow jobs to use node pool "b-x"`},
		{usingJob("default", "bridge"), `job.NodePool: namespace "dev" does not allow jobs to use node pool "default"`},
		{usingJob("prod", "bridge", "docker", "docker"), `used task driver "docker" is not allowed in namespace "dev"`},
		{usingJob("prod", "bridge", "raw_exec", "docker"), `used task drivers ["raw_exec" "docker"] are not allowed in namespace "dev"`},
		{usingJob("prod", "", "sandbox"), `used group network mode "host" is not allowed in namespace "dev"`},
		{claiming, `task "sandbox": identity "default": namespace "dev" has no extra claim "cost"`},
		{docker, `used group network mode "host" is not allowed in namespace "dev"`},
	} {
		var texts []string
		for _, err := range Refused(ns, c.job) {
			texts = append(texts, err.Error())
		}
		require.Equal(t, c.want, strings.Join(texts, "; "))
	}
	for _, hidden := range []map[string]any{{"network_mode": "${NOMAD_META_m}"}, {"${NOMAD_META_m}": "host", "network_mode": "none"}} {
		job := usingJob("prod", "bridge", "sandbox")
		job.TaskGroups[0].Tasks[0].Config = hidden
		require.EqualError(t, Refused(ns, job)[0], `used group network mode "${NOMAD_META_m}" is not allowed in namespace "dev"`)
		ns.Capabilities.DisabledNetworkModes = nil
		require.Empty(t, Refused(ns, job), "nothing is restricted")
		ns.Capabilities.DisabledNetworkModes = []string{"host"}
	}
	require.Empty(t, Refused(&tenancy.Namespace{Name: "free"}, usingJob("any", "host", "raw_exec")))
	require.Empty(t, Refused(nil, usingJob("any", "host", "raw_exec")))
	require.Equal(t, "prod", Pool(ns))
	require.Equal(t, drover.DefaultNodePool, Pool(nil))
}

// The agent reads files of the node with its own rights.
func TestFilesOfTheNodeAreForRawExec(t *testing.T) {
	t.Parallel()
	refused := func(source string, enabled ...string) []error {
		job := usingJob(drover.DefaultNodePool, "bridge", "sandbox")
		job.TaskGroups[0].Tasks[0].Artifacts = []*drover.TaskArtifact{nil, {GetterSource: source}}
		return Refused(&tenancy.Namespace{Name: "dev", Capabilities: &tenancy.NamespaceCapabilities{EnabledTaskDrivers: enabled}}, job)
	}
	for _, source := range []string{
		"/etc/shadow", "file:///etc/shadow", "FILE:///etc/shadow", "file::/etc/shadow", "::file:///etc/shadow", "${NOMAD_META_x}",
		"f${meta.x}", "::${meta.x}", "file${meta.x}", "file::${meta.x}", "${attr.x}https://example.org/x",
	} {
		errs := refused(source, "sandbox")
		require.Len(t, errs, 1, source)
		require.EqualError(t, errs[0], `task "sandbox": artifact "`+source+
			`" may be a file of the node, which takes the task driver "raw_exec", `+
			`and that is not allowed in namespace "dev"`)
		require.Empty(t, refused(source, "sandbox", "raw_exec"), source)
		require.Empty(t, refused(source), source)
	}
	for _, source := range []string{
		"https://example.org/${meta.x}", "git::${meta.x}", "github.com/${meta.x}/y", "s3::https://x.s3.amazonaws.com/file:///x",
		"git@example.org:x",
	} {
		require.Empty(t, refused(source, "sandbox"), source)
	}
}

func TestWhichPoolsAreAllowed(t *testing.T) {
	t.Parallel()
	allows := func(pool string, c tenancy.NamespaceNodePoolConfig) bool {
		return AllowsPool(&tenancy.Namespace{NodePoolConfiguration: &c}, pool)
	}
	require.True(t, allows("x", tenancy.NamespaceNodePoolConfig{}))
	require.False(t, allows("x", tenancy.NamespaceNodePoolConfig{Allowed: []string{}}), "an empty list allows the default only")
	require.True(t, allows("default", tenancy.NamespaceNodePoolConfig{Allowed: []string{}}))
	require.False(t, allows("prod-1", tenancy.NamespaceNodePoolConfig{Denied: []string{"prod-*"}}))
	require.True(t, allows("dev", tenancy.NamespaceNodePoolConfig{Denied: []string{"prod-*"}}))
}

// TestGlobsMeanWhatExpressionsDo compares globs with regular expressions of the same meaning.
func TestGlobsMeanWhatExpressionsDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab*]{0,6}`).Draw(t, "glob")
		text := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "text")
		want := regexp.MustCompile("^" + strings.ReplaceAll(glob, "*", ".*") + "$").MatchString(text)
		require.Equal(t, want, Matches(glob, text))
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	has := func(pool string) bool { return pool == "prod" }
	for _, c := range []struct {
		ns   tenancy.Namespace
		want string
	}{
		{tenancy.Namespace{Name: "n"}, ""},
		{tenancy.Namespace{Name: "n", NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Default: "prod", Denied: []string{"x*"}}}, ""},
		{
			tenancy.Namespace{Name: "n", NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Default: "pord"}},
			`namespace "n": NodePoolConfiguration.Default: nonexistent node pool "pord"`,
		},
		{
			tenancy.Namespace{Name: "n", NodePoolConfiguration: &tenancy.NamespaceNodePoolConfig{Allowed: []string{}, Denied: []string{"x"}}},
			`namespace "n": NodePoolConfiguration: Allowed and Denied cannot both be set`,
		},
		{
			tenancy.Namespace{Name: "n", Capabilities: &tenancy.NamespaceCapabilities{DisabledTaskDrivers: []string{"raw exec"}}},
			`namespace "n": Capabilities.DisabledTaskDrivers: "raw exec" is no name`,
		},
		{
			tenancy.Namespace{Name: "n", Capabilities: &tenancy.NamespaceCapabilities{
				EnabledNetworkModes: []string{"bridge"}, DisabledNetworkModes: []string{"hots"},
			}},
			`namespace "n": Capabilities.DisabledNetworkModes: "hots" is no network mode: host, bridge, none or cni/NAME`,
		},
	} {
		err := Check(&c.ns, has)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, c.want)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}
