package environment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/network"
)

func TestLimitsThatMeanNothing(t *testing.T) {
	t.Parallel()
	for field, l := range map[string]drover.Limits{
		"limits.wall":        {Wall: -1},
		"limits.cpu":         {CPU: MaxIdleTimeout + 1},
		"limits.cpuMHz":      {CPUMHz: -1},
		"limits.memoryMB":    {MemoryMB: -1},
		"limits.pids":        {Pids: -1},
		"limits.outputBytes": {OutputBytes: 1<<50 + 1},
		"limits.openFiles":   {OpenFiles: -1},
		"limits.fileSizeMB":  {FileSizeMB: -1},
	} {
		err := ValidateLimits(l)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), field)
		require.ErrorContains(t, err, field+" ")
	}
	require.NoError(t, ValidateLimits(drover.Limits{}))
	require.NoError(t, ValidateLimits(drover.Limits{Wall: MaxIdleTimeout, OutputBytes: 1 << 50}))
}

func TestNoLimitIsOverTheEnvironments(t *testing.T) {
	t.Parallel()
	env := execution.Environment{CPU: 100, MemoryMaxMB: 64, PidsLimit: 10}
	require.NoError(t, CheckLimits(drover.Limits{CPUMHz: 100, MemoryMB: 64, Pids: 10}, env))
	for field, l := range map[string]drover.Limits{
		"memoryMB": {MemoryMB: 65}, "pids": {Pids: 11}, "cpuMHz": {CPUMHz: 101},
	} {
		require.ErrorContains(t, CheckLimits(l, env), "limits."+field)
	}
	require.NoError(
		t, CheckLimits(drover.Limits{CPUMHz: 1 << 20, MemoryMB: 1 << 20, Pids: 1 << 20}, execution.Environment{}), "without bounds",
	)
}

// TestAnExecutionIsBoundByItsClaim: each limit is the execution's, or the claim's where it says nothing, and never more.
func TestAnExecutionIsBoundByItsClaim(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) drover.Limits {
		n := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
		return drover.Limits{
			Wall: time.Duration(n("wall")), CPU: time.Duration(n("cpu")), CPUMHz: n("mhz"), MemoryMB: n("memory"), Pids: n("pids"),
			OutputBytes: int64(n("output")), OpenFiles: n("files"), FileSizeMB: n("size"),
		}
	})
	list := func(l drover.Limits) []int {
		return []int{int(l.Wall), int(l.CPU), l.CPUMHz, l.MemoryMB, l.Pids, int(l.OutputBytes), l.OpenFiles, l.FileSizeMB}
	}
	rapid.Check(t, func(t *rapid.T) {
		asked, claimed := draw.Draw(t, "asked"), draw.Draw(t, "claimed")
		got, err := BindLimits(asked, &claimed)
		over := false
		for i, bound := range list(claimed) {
			want := list(asked)[i]
			over = over || bound > 0 && want > bound
			if want == 0 {
				want = bound
			}
			if err == nil {
				require.Equal(t, want, list(got)[i])
			}
		}
		require.Equal(t, over, err != nil)
		if over {
			require.Equal(t, drover.Invalid, drover.CodeOf(err))
		}
	})
	same, err := BindLimits(drover.Limits{Pids: 7}, nil)
	require.NoError(t, err)
	require.Equal(t, drover.Limits{Pids: 7}, same)
}

func TestTheMemoryThatIsNotSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ memory, most, wantMemory, wantMost int }{
		{0, 0, DefaultMemoryMB, DefaultMemoryMaxMB},
		{0, 16, 16, 16},
		{0, 1000, DefaultMemoryMB, 1000},
		{100, 0, 100, 100},
		{100, 200, 100, 200},
	} {
		e := Canonicalize(execution.Environment{MemoryMB: c.memory, MemoryMaxMB: c.most})
		require.Equal(t, []int{c.wantMemory, c.wantMost}, []int{e.MemoryMB, e.MemoryMaxMB}, "%+v", c)
	}
}

// TestEqualEnvironmentsAreEqualValues: what is written in several ways is one, and to canonicalize twice changes nothing.
func TestEqualEnvironmentsAreEqualValues(t *testing.T) {
	t.Parallel()
	one := Canonicalize(execution.Environment{
		ID: "e", ExposedPorts: []uint16{443, 80, 443}, Env: map[string]string{}, Meta: map[string]string{},
		Constraints: []*constraint.Constraint{},
	})
	two := Canonicalize(execution.Environment{ID: "e", ExposedPorts: []uint16{80, 443}})
	require.Equal(t, two, one)
	require.Equal(t, one, Canonicalize(one))
	ports := []uint16{9, 1}
	Canonicalize(execution.Environment{ExposedPorts: ports})
	require.Equal(t, []uint16{9, 1}, ports, "the argument is not changed")
}

func TestWhereAPortIsReached(t *testing.T) {
	t.Parallel()
	mapped := network.PortMapping{Label: "80", Value: 20_001, To: 80}
	host := &drover.Allocation{Job: &drover.Job{TaskGroups: []*drover.TaskGroup{{Networks: []*network.Resource{{Mode: "host"}}}}}}
	bridge := &drover.Allocation{Job: &drover.Job{TaskGroups: []*drover.TaskGroup{{Networks: []*network.Resource{{Mode: "bridge"}}}}}}
	for name, c := range map[string]struct {
		driver string
		alloc  *drover.Allocation
		want   int
	}{
		"behind a bridge":          {"sandbox", bridge, 20_001},
		"on the machine":           {"sandbox", host, 80},
		"docker has its own":       {"docker", host, 20_001},
		"podman has its own":       {"podman", host, 20_001},
		"the job is not known":     {"sandbox", &drover.Allocation{}, 80},
		"docker's without its job": {"docker", &drover.Allocation{}, 20_001},
	} {
		require.Equal(t, c.want, Address(execution.Environment{Driver: c.driver}, c.alloc, mapped).Value, name)
	}
}
