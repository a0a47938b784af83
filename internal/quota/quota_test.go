package quota

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
)

func limits(r *tenancy.QuotaResources) *Account {
	return &Account{Quota: "q", Limits: &tenancy.QuotaLimit{Region: "global", RegionLimit: r}}
}

func TestAccountSaysWhatExceeds(t *testing.T) {
	t.Parallel()
	a := limits(&tenancy.QuotaResources{
		CPU: new(1000), MemoryMB: new(512), Cores: new(-1), Allocations: new(2),
		Devices:   []*tenancy.QuotaDevice{{Name: "nvidia/gpu", Count: new(uint64(1))}, {Name: "fpga", Count: new(uint64(0))}},
		Storage:   &tenancy.QuotaStorage{VariablesMB: 1},
		NodePools: []*tenancy.QuotaNodePool{{NodePool: "batch", MemoryMB: new(100)}},
	})
	a.Add("batch", Amount{CPU: 600, MemoryMB: 60, Allocations: 1, Devices: map[string]int64{"nvidia/gpu/t4": 1}})
	of := func(device string) Amount { return Amount{Devices: map[string]int64{device: 1}} }
	for name, tt := range map[string]struct {
		pool string
		more Amount
		want []string
	}{
		"nothing":             {"", Amount{}, nil},
		"what fits":           {"default", Amount{CPU: 400, MemoryMB: 452, Allocations: 1}, nil},
		"a MHz too much":      {"default", Amount{CPU: 401}, []string{"cpu exhausted (401 needed > 400 left of 1000)"}},
		"memory":              {"default", Amount{MemoryMB: 1024}, []string{"memory exhausted (1024 needed > 452 left of 512)"}},
		"what is disallowed":  {"default", Amount{Cores: 1}, []string{"cores exhausted (1 needed > 0 left of 0)"}},
		"allocations":         {"default", Amount{Allocations: 2}, []string{"allocations exhausted (2 needed > 1 left of 2)"}},
		"what is not limited": {"default", Amount{MemoryMaxMB: unbounded}, nil},
		"a pool's own limit":  {"batch", Amount{MemoryMB: 41}, []string{`node pool "batch": memory exhausted (41 needed > 40 left of 100)`}},
		"another pool":        {"default", Amount{MemoryMB: 41}, nil},
		"less":                {"batch", Amount{MemoryMB: -10, CPU: 1}, nil},
		"a device given":      {"default", of("nvidia/gpu/a100"), []string{`device "nvidia/gpu" exhausted (1 needed > 0 left of 1)`}},
		"a device asked for":  {"default", of("nvidia/gpu"), []string{`device "nvidia/gpu" exhausted (1 needed > 0 left of 1)`}},
		"a device of a type":  {"default", of("fpga"), []string{`device "fpga" exhausted (1 needed > 0 left of 0)`}},
		"another vendor's":    {"default", of("amd/gpu/x"), nil},
		"the last byte":       {"", Amount{VariablesBytes: 1 << 20}, nil},
		"a byte of a variable": {"", Amount{VariablesBytes: 1<<20 + 1}, []string{
			"variables exhausted (1048577 bytes needed > 1048576 left of 1048576)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, a.Exceeds(tt.pool, tt.more))
		})
	}
	require.Nil(t, (*Account)(nil).Exceeds("", Amount{CPU: 1}))
}

// A lowered limit refuses what is new, and lets what is there shrink.
func TestAboveTheLimitOnlyGrowthIsRefused(t *testing.T) {
	t.Parallel()
	a := limits(&tenancy.QuotaResources{CPU: new(10), MemoryMB: new(10)})
	a.Add("default", Amount{CPU: 20, MemoryMB: 5})
	require.Equal(t, []string{"cpu exhausted (1 needed > 0 left of 10)"}, a.Exceeds("default", Amount{CPU: 1}))
	require.Nil(t, a.Exceeds("default", Amount{CPU: -5, MemoryMB: 5}))
}

func TestWhatIsAskedIsWhatIsHeld(t *testing.T) {
	t.Parallel()
	g := &drover.TaskGroup{Tasks: []*drover.Task{
		{Name: "a", Resources: &drover.Resources{CPU: 100, MemoryMB: 50, MemoryMaxMB: 80}},
		{Name: "b", Resources: &drover.Resources{Cores: 2, CPU: 999, MemoryMB: 10, Devices: []*drover.RequestedDevice{{Name: "gpu"}}}},
		{Name: "c"},
	}}
	require.Equal(t, Amount{
		CPU: 100, Cores: 2, MemoryMB: 60, MemoryMaxMB: 90, Allocations: 1, Devices: map[string]int64{"gpu": 1},
	}, Asked(g, true))
	require.Equal(t, int64(60), Asked(g, false).MemoryMaxMB)
	held := &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{
		"a": {Cpu: drover.AllocatedCpuResources{CpuShares: 100}, Memory: drover.AllocatedMemoryResources{MemoryMB: 50, MemoryMaxMB: 80}},
		"b": {
			Cpu: drover.AllocatedCpuResources{CpuShares: 5000, ReservedCores: []uint16{0, 1}}, Memory: drover.AllocatedMemoryResources{MemoryMB: 10},
			Devices: []*drover.AllocatedDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "t4", DeviceIDs: []string{"x"}}},
		},
	}}
	a := &drover.Allocation{ClientStatus: drover.AllocClientRunning, AllocatedResources: held}
	require.Equal(t, Amount{
		CPU: 100, Cores: 2, MemoryMB: 60, MemoryMaxMB: 90, Allocations: 1, Devices: map[string]int64{"nvidia/gpu/t4": 1},
	}, Of(a))
	a.ClientStatus = drover.AllocClientComplete
	require.True(t, Of(a).IsZero())
	require.Equal(t, Amount{VariablesBytes: 3}, OfVariable(&secrets.SealedVariable{Data: []byte("abc")}))
	require.Equal(t, int64(unbounded), Asked(&drover.TaskGroup{Tasks: []*drover.Task{
		{Resources: &drover.Resources{MemoryMB: 1, MemoryMaxMB: -1}},
	}}, true).MemoryMaxMB)
}

func TestUseIsTakenBack(t *testing.T) {
	t.Parallel()
	x := Amount{CPU: 1, Devices: map[string]int64{"a/b/c": 2}}
	u := Use{}.Add("p", x).Add("q", x)
	kept := u
	require.Equal(t, int64(4), u.Total.Devices["a/b/c"])
	require.Equal(t, u, Use{}.Add("p", x).Sum(Use{}.Add("q", x)))
	u = u.Sub("p", x)
	require.NotContains(t, u.Pools, "p")
	require.Equal(t, int64(4), kept.Total.Devices["a/b/c"], "what was handed out is not changed")
	require.True(t, u.Sub("q", x).IsZero())
}

func TestCompleteNamesTheField(t *testing.T) {
	t.Parallel()
	spec := func(l ...*tenancy.QuotaLimit) *tenancy.QuotaSpec { return &tenancy.QuotaSpec{Name: "q", Limits: l} }
	region := func(r *tenancy.QuotaResources) *tenancy.QuotaSpec {
		return spec(&tenancy.QuotaLimit{Region: "global", RegionLimit: r})
	}
	for want, q := range map[string]*tenancy.QuotaSpec{
		`invalid name "*"`: {Name: "*"}, `quota "q": Limits: must provide at least one limit`: spec(),
		`Limits[0].Region: must provide a region`:          spec(&tenancy.QuotaLimit{}),
		`Limits[1].Region: there are two limits`:           spec(&tenancy.QuotaLimit{Region: "a"}, &tenancy.QuotaLimit{Region: "a"}),
		`Limits[0]: is null`:                               spec(nil),
		`Limits[0].RegionLimit.NUMA is not supported`:      region(&tenancy.QuotaResources{NUMA: &drover.NUMAResource{}}),
		`Limits[0].RegionLimit.SecretsMB is not supported`: region(&tenancy.QuotaResources{SecretsMB: new(1)}),
		`Limits[0].RegionLimit.Storage is not supported`: region(&tenancy.QuotaResources{
			Storage: &tenancy.QuotaStorage{HostVolumesMB: 1},
		}),
		`Limits[0].RegionLimit.Devices[0].Name`:  region(&tenancy.QuotaResources{Devices: []*tenancy.QuotaDevice{{Count: new(uint64(1))}}}),
		`Limits[0].RegionLimit.Devices[0].Count`: region(&tenancy.QuotaResources{Devices: []*tenancy.QuotaDevice{{Name: "gpu"}}}),
		`Devices[0]: constraints and affinities`: region(&tenancy.QuotaResources{Devices: []*tenancy.QuotaDevice{
			{Name: "gpu", Count: new(uint64(1)), Constraints: []*constraint.Constraint{{}}},
		}}),
		`NodePools[1].NodePool: must be the name of a node pool that comes once`: region(&tenancy.QuotaResources{
			NodePools: []*tenancy.QuotaNodePool{{NodePool: "a"}, {NodePool: "a"}},
		}),
		`NodePools[0].Storage is not supported`: region(&tenancy.QuotaResources{
			NodePools: []*tenancy.QuotaNodePool{{NodePool: "a", Storage: &tenancy.QuotaStorage{VariablesMB: 1}}},
		}),
		`Devices[0].Name: must be type`: region(&tenancy.QuotaResources{Devices: []*tenancy.QuotaDevice{
			{Name: "nvidia/g pu/Tesla T4", Count: new(uint64(1))},
		}}),
	} {
		require.ErrorContains(t, Complete(q), want)
	}
	q := region(&tenancy.QuotaResources{CPU: new(1)})
	require.NoError(t, Complete(q))
	other := region(&tenancy.QuotaResources{CPU: new(2)})
	require.NoError(t, Complete(other))
	require.NotEqual(t, q.Limits[0].Hash, other.Limits[0].Hash)
	require.NoError(t, Complete(q))
	require.Equal(t, q.Limits[0].Hash, Hash(q.Limits[0]), "the hash is of the rest")
}

func TestUsageHasTheFormOfTheLimit(t *testing.T) {
	t.Parallel()
	eu := &tenancy.QuotaResources{
		Devices: []*tenancy.QuotaDevice{{Name: "gpu", Count: new(uint64(9))}}, NodePools: []*tenancy.QuotaNodePool{{NodePool: "p"}},
	}
	q := &tenancy.QuotaSpec{Name: "q", Here: "eu", Limits: []*tenancy.QuotaLimit{{Region: "us"}, {Region: "eu", RegionLimit: eu}}}
	require.NoError(t, Complete(q))
	used := Use{}.Add("p", Amount{CPU: 5, Allocations: 1, Devices: map[string]int64{"x/gpu/y": 2}}).Add("", Amount{VariablesBytes: 1})
	u := Usage(q, used, execution.Spent{CPU: 90 * time.Second, Bytes: 5 << 20}, 1.5).Used[key(q.Limits[1].Hash)]
	require.Equal(t, []int{5, 1}, []int{*u.RegionLimit.CPU, *u.RegionLimit.Allocations})
	require.Equal(t, []int{90, 5}, []int{*u.RegionLimit.ExecutionCPUSeconds, *u.RegionLimit.ExecutionMB})
	require.InDelta(t, 1.5, *u.RegionLimit.FleetPerDay, 0)
	require.Equal(t, []int{1, 1}, []int{*u.VariablesLimit, u.RegionLimit.Storage.VariablesMB})
	require.Equal(t, uint64(2), *u.RegionLimit.Devices[0].Count)
	require.Equal(t, 5, *u.RegionLimit.NodePools[0].CPU)
	q.Here = "asia"
	require.Len(t, Usage(q, used, execution.Spent{CPU: 90 * time.Second, Bytes: 5 << 20}, 0).Used, 1, "what is not limited is told, too")
}

func TestTakeIsWhatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	a := limits(&tenancy.QuotaResources{CPU: new(1000)})
	require.Equal(t, 3, a.Take("default", Amount{CPU: 300, Allocations: 1}, 10))
	require.Equal(t, Amount{CPU: 900, Allocations: 3}, a.Used.Total)
	require.Equal(t, 2, a.Take("default", Amount{CPU: 50}, 2))
	require.Equal(t, 0, a.Take("default", Amount{CPU: 50}, 2))
	require.Equal(t, 7, (*Account)(nil).Take("default", Amount{CPU: 50}, 7))
}

func TestADaysBudget(t *testing.T) {
	t.Parallel()
	a := limits(&tenancy.QuotaResources{ExecutionCPUSeconds: new(60), ExecutionMB: new(10)})
	require.NoError(t, a.Overspent(execution.Spent{CPU: 59 * time.Second, Bytes: 10<<20 - 1}))
	require.EqualError(t, a.Overspent(execution.Spent{CPU: 61 * time.Second}),
		`quota "q": execution_cpu_seconds exhausted (61.0 CPU-seconds used of 60 for today, which ends at 00:00 UTC)`)
	err := a.Overspent(execution.Spent{Bytes: 10 << 20})
	require.ErrorContains(t, err, "execution_mb exhausted (10.0 MB used of 10")
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
	require.Error(t, limits(&tenancy.QuotaResources{ExecutionMB: new(-1)}).Overspent(execution.Spent{}))
	require.NoError(t, limits(&tenancy.QuotaResources{}).Overspent(execution.Spent{CPU: time.Hour}))
	require.NoError(t, (*Account)(nil).Overspent(execution.Spent{CPU: time.Hour}))
}
