package feasible

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

func TestConstraintOperands(t *testing.T) {
	t.Parallel()
	n := &drover.Node{
		ID: "id1", Name: "one", Datacenter: "dc1", NodeClass: "big", NodePool: "gpu",
		Attributes: map[string]string{"cpu.cores": "16", "version": "1.10.2", "pre": "1.10.0-beta", "set": "a, b,c", "load": "0.5"},
		Meta:       map[string]string{"rack": "r1", "empty": ""},
	}
	for _, c := range []struct {
		left, operand, right string
		want                 bool
	}{
		{"${node.unique.id}", "=", "id1", true},
		{"${node.unique.name}", "==", "one", true},
		{"${node.datacenter}", "is", "dc2", false},
		{"${node.class}", "!=", "big", false},
		{"${node.pool}", "not", "default", true},
		{"${meta.rack}", "", "r1", true},
		{"${meta.none}", "=", "r1", false},
		{"${meta.none}", "!=", "r1", true},
		{"${meta.none}", "is_not_set", "", true},
		{"${meta.empty}", "is_set", "", true},
		{"${node.unknown}", "is_set", "", false},
		{"r1", "=", "${meta.rack}", true},
		{"${attr.cpu.cores}", "<", "9", false},
		{"${attr.cpu.cores}", ">", "9", true},
		{"${attr.cpu.cores}", ">=", "16", true},
		{"${attr.cpu.cores}", "<=", "15", false},
		{"${attr.load}", "<", "1", true},
		{"${meta.rack}", "<", "r2", true},
		{"${meta.none}", "<", "r2", false},
		{"${attr.version}", "version", ">= 1.9, < 2", true},
		{"${attr.version}", "version", "~> 1.9.0", false},
		{"${attr.version}", "version", "nonsense", false},
		{"${attr.pre}", "version", ">= 1.9", false},
		{"${attr.pre}", "semver", ">= 1.9.0", true},
		{"${attr.pre}", "semver", ">= 1.10.0", false},
		{"${attr.pre}", "semver", ">", false},
		{"${attr.version}", "regexp", `^1\.1\d`, true},
		{"${attr.version}", "regexp", `(`, false},
		{"${attr.set}", "set_contains", "a,c", true},
		{"${attr.set}", "set_contains_all", "a,d", false},
		{"${attr.set}", "set_contains_any", "d, b", true},
		{"${attr.set}", "set_contains_any", "d,e", false},
		{"${meta.rack}", "no_such_operand", "r1", false},
		{"", "distinct_hosts", "", true},
	} {
		require.Equal(t, c.want, NewMatcher().Node(n, c.left, c.operand, c.right), "%s %s %s", c.left, c.operand, c.right)
	}
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true},
		{"*", "dc1", true},
		{"dc1", "dc1", true},
		{"dc1", "dc12", false},
		{"dc*", "dc12", true},
		{"*-eu", "dc-eu", true},
		{"*-eu", "dc-eu-2", false},
		{"a*b*c", "a1b2c", true},
		{"a*b*c", "a1c2b", false},
		{"", "x", false},
	} {
		require.Equal(t, c.want, glob(c.pattern, c.s), "%s %s", c.pattern, c.s)
	}
}

func TestComputedClass(t *testing.T) {
	t.Parallel()
	a := &drover.Node{ID: "a", Attributes: map[string]string{"unique.hostname": "a", "os": "linux"}}
	b := &drover.Node{ID: "b", Attributes: map[string]string{"unique.hostname": "b", "os": "linux"}}
	require.Equal(t, ComputedClass(a), ComputedClass(b))
	b.Meta = map[string]string{"os": "linux"}
	require.NotEqual(t, ComputedClass(a), ComputedClass(b))
}

// What a node lacks is named; what is there but not well, and what is spared, is not lacking.
func TestLacks(t *testing.T) {
	t.Parallel()
	n := &drover.Node{
		Drivers:     map[string]*drover.DriverInfo{"sandbox": {Detected: true}},
		HostVolumes: map[string]*drover.HostVolumeInfo{"ro": {ReadOnly: true}},
		Attributes:  map[string]string{"os.name": "debian"},
	}
	job := &drover.Job{Constraints: []*constraint.Constraint{{LTarget: "${attr.os.name}", Operand: "=", RTarget: "debian"}}}
	g := &drover.TaskGroup{Tasks: []*drover.Task{{Driver: "sandbox", Resources: &drover.Resources{}}}}
	none := func(*constraint.Constraint) bool { return false }
	require.Empty(t, Lacks(job, g, n, none))
	g.Tasks[0].Driver = "raw_exec"
	require.Equal(t, "driver raw_exec", Lacks(job, g, n, none))
	g.Tasks[0].Driver = "sandbox"
	g.Volumes = map[string]*drover.VolumeRequest{"v": {Source: "ro"}}
	require.Equal(t, "host volume ro", Lacks(job, g, n, none))
	g.Volumes["v"].ReadOnly = true
	require.Empty(t, Lacks(job, g, n, none))
	g.Tasks[0].Resources.Devices = []*drover.RequestedDevice{{Name: "gpu"}}
	require.Equal(t, "device gpu", Lacks(job, g, n, none))
	g.Tasks[0].Resources.Devices = nil
	job.Constraints[0].RTarget = "plan9"
	require.Equal(t, "${attr.os.name} = plan9", Lacks(job, g, n, none))
	require.Empty(t, Lacks(job, g, n, func(*constraint.Constraint) bool { return true }))
}
