package tenant

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// usingJob is a job whose group has the network mode and whose tasks have the drivers.
func usingJob(pool, mode string, drivers ...string) *drover.Job {
	g := &drover.TaskGroup{Name: "g"}
	if mode != "none at all" {
		g.Networks = []*drover.NetworkResource{{Mode: mode}}
	}
	for _, d := range drivers {
		g.Tasks = append(g.Tasks, &drover.Task{Name: d, Driver: d})
	}
	return &drover.Job{ID: "j", NodePool: pool, TaskGroups: []*drover.TaskGroup{g, nil}}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	ns := &drover.Namespace{
		Name: "dev",
		Capabilities: &drover.NamespaceCapabilities{
			EnabledTaskDrivers: []string{"docker", "sandbox"}, DisabledTaskDrivers: []string{"docker"},
			DisabledNetworkModes: []string{"host"},
		},
		NodePoolConfiguration: &drover.NamespaceNodePoolConfig{Default: "prod", Allowed: []string{"b-*-x"}},
	}
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
	require.Empty(t, Refused(&drover.Namespace{Name: "free"}, usingJob("any", "host", "raw_exec")))
	require.Empty(t, Refused(nil, usingJob("any", "host", "raw_exec")))
	require.Equal(t, "prod", Pool(ns))
	require.Equal(t, drover.DefaultNodePool, Pool(nil))
}

func TestWhichPoolsAreAllowed(t *testing.T) {
	t.Parallel()
	allows := func(pool string, c drover.NamespaceNodePoolConfig) bool {
		return AllowsPool(&drover.Namespace{NodePoolConfiguration: &c}, pool)
	}
	require.True(t, allows("x", drover.NamespaceNodePoolConfig{}))
	require.False(t, allows("x", drover.NamespaceNodePoolConfig{Allowed: []string{}}), "an empty list allows the default only")
	require.True(t, allows("default", drover.NamespaceNodePoolConfig{Allowed: []string{}}))
	require.False(t, allows("prod-1", drover.NamespaceNodePoolConfig{Denied: []string{"prod-*"}}))
	require.True(t, allows("dev", drover.NamespaceNodePoolConfig{Denied: []string{"prod-*"}}))
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
		ns   drover.Namespace
		want string
	}{
		{drover.Namespace{Name: "n"}, ""},
		{drover.Namespace{Name: "n", NodePoolConfiguration: &drover.NamespaceNodePoolConfig{Default: "prod", Denied: []string{"x*"}}}, ""},
		{
			drover.Namespace{Name: "n", NodePoolConfiguration: &drover.NamespaceNodePoolConfig{Default: "pord"}},
			`namespace "n": NodePoolConfiguration.Default: nonexistent node pool "pord"`,
		},
		{
			drover.Namespace{Name: "n", NodePoolConfiguration: &drover.NamespaceNodePoolConfig{Allowed: []string{}, Denied: []string{"x"}}},
			`namespace "n": NodePoolConfiguration: Allowed and Denied cannot both be set`,
		},
		{
			drover.Namespace{Name: "n", Capabilities: &drover.NamespaceCapabilities{DisabledTaskDrivers: []string{"raw exec"}}},
			`namespace "n": Capabilities.DisabledTaskDrivers: "raw exec" is no name`,
		},
		{
			drover.Namespace{Name: "n", Capabilities: &drover.NamespaceCapabilities{
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
