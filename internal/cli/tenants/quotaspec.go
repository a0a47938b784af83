package tenants

import (
	_ "embed"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/tenancy"
)

//go:embed example.quota.hcl
var exampleQuota string

// quotaFile is a quota's specification, with Nomad's keys.
type quotaFile struct {
	Name        string      `hcl:"name"`
	Description string      `hcl:"description,optional"`
	Limits      []limitFile `hcl:"limit,block"`
}

type limitFile struct {
	Region         string       `hcl:"region"`
	RegionLimit    *regionLimit `hcl:"region_limit,block"`
	VariablesLimit *int         `hcl:"variables_limit,optional"`
}

type regionLimit struct {
	CPU         *int           `hcl:"cpu,optional"`
	Cores       *int           `hcl:"cores,optional"`
	MemoryMB    *int           `hcl:"memory,optional"`
	MemoryMaxMB *int           `hcl:"memory_max,optional"`
	SecretsMB   *int           `hcl:"secrets,optional"`
	Allocations *int           `hcl:"allocations,optional"`
	Runners     *int           `hcl:"runners,optional"`
	Executions  *int           `hcl:"executions,optional"`
	CPUSeconds  *int           `hcl:"execution_cpu_seconds,optional"`
	OutputMB    *int           `hcl:"execution_mb,optional"`
	FleetPerDay *float64       `hcl:"fleet_per_day,optional"`
	Devices     []deviceLimit  `hcl:"device,block"`
	Storage     *storageLimit  `hcl:"storage,block"`
	NodePools   []nodePoolFile `hcl:"node_pool,block"`
}

type nodePoolFile struct {
	NodePool    string        `hcl:"name,label"`
	CPU         *int          `hcl:"cpu,optional"`
	Cores       *int          `hcl:"cores,optional"`
	MemoryMB    *int          `hcl:"memory,optional"`
	MemoryMaxMB *int          `hcl:"memory_max,optional"`
	Allocations *int          `hcl:"allocations,optional"`
	Devices     []deviceLimit `hcl:"device,block"`
}

type deviceLimit struct {
	Name  string `hcl:"name,label"`
	Count *int   `hcl:"count,optional"`
}

type storageLimit struct {
	Variables   int `hcl:"variables,optional"`
	HostVolumes int `hcl:"host_volumes,optional"`
}

// readQuota reads a specification, or what 'quota inspect' prints. Errors: Invalid.
func readQuota(text []byte, file string) (*tenancy.QuotaSpec, error) {
	q := &tenancy.QuotaSpec{}
	if term.OfAPI(text) {
		return q, term.DecodeAPI(text, file, q)
	}
	var f quotaFile
	if err := term.DecodeSpec(text, file, &f); err != nil {
		return nil, err
	}
	q.Name, q.Description = f.Name, f.Description
	for _, l := range f.Limits {
		limits, err := l.RegionLimit.limits()
		if err != nil {
			return nil, err
		}
		q.Limits = append(q.Limits, &tenancy.QuotaLimit{Region: l.Region, VariablesLimit: l.VariablesLimit, RegionLimit: limits})
	}
	return q, nil
}

func (r *regionLimit) limits() (*tenancy.QuotaResources, error) {
	if r == nil {
		return nil, nil
	}
	devices, err := devicesOf(r.Devices)
	if err != nil {
		return nil, err
	}
	out := &tenancy.QuotaResources{
		CPU: r.CPU, Cores: r.Cores, MemoryMB: r.MemoryMB, MemoryMaxMB: r.MemoryMaxMB, SecretsMB: r.SecretsMB, Allocations: r.Allocations,
		Runners: r.Runners, Executions: r.Executions, ExecutionCPUSeconds: r.CPUSeconds, ExecutionMB: r.OutputMB,
		FleetPerDay: r.FleetPerDay, Devices: devices,
	}
	if s := r.Storage; s != nil {
		out.Storage = &tenancy.QuotaStorage{VariablesMB: s.Variables, HostVolumesMB: s.HostVolumes}
	}
	for _, p := range r.NodePools {
		devices, err := devicesOf(p.Devices)
		if err != nil {
			return nil, err
		}
		out.NodePools = append(out.NodePools, &tenancy.QuotaNodePool{
			NodePool: p.NodePool, CPU: p.CPU, Cores: p.Cores, MemoryMB: p.MemoryMB, MemoryMaxMB: p.MemoryMaxMB, Allocations: p.Allocations,
			Devices: devices,
		})
	}
	return out, nil
}

// devicesOf are the devices of blocks; a block without count allows one, as Nomad's does. Errors: Invalid.
func devicesOf(blocks []deviceLimit) (out []*tenancy.QuotaDevice, err error) {
	for _, b := range blocks {
		n := uint64(1)
		if b.Count != nil {
			if *b.Count < 0 {
				return nil, drover.Errorf(drover.Invalid, "device %q: count: must not be negative, got %d; 0 allows none", b.Name, *b.Count)
			}
			n = uint64(*b.Count)
		}
		out = append(out, &tenancy.QuotaDevice{Name: b.Name, Count: &n})
	}
	return out, nil
}
