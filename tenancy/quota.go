package tenancy

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

// QuotaSpec bounds what the namespaces that refer to it may use together.
type QuotaSpec struct {
	Name        string
	Description string
	Limits      []*QuotaLimit // one a region; a region without one is not limited
	Here        string        `json:"-"` // the region whose limit holds in this state
	CreateIndex uint64
	ModifyIndex uint64
}

// QuotaLimit is what holds in a region.
type QuotaLimit struct {
	Region         string
	RegionLimit    *QuotaResources
	VariablesLimit *int   // Nomad's older place of Storage.VariablesMB, MB
	Hash           []byte // of the rest; the key of what is used
}

// QuotaResources are limits, or what is used. Of a limit nil and 0 are none, and below 0 nothing may be used.
type QuotaResources struct {
	CPU         *int // MHz of tasks that reserve no cores
	Cores       *int
	MemoryMB    *int
	MemoryMaxMB *int // a task without its own maximum counts with its MemoryMB
	Devices     []*QuotaDevice
	NUMA        *drover.NUMAResource // not supported
	SecretsMB   *int                 // not supported
	Storage     *QuotaStorage
	NodePools   []*QuotaNodePool

	// Not Nomad's.
	Allocations *int `json:",omitempty"` // that hold resources: also those that are ending
	Runners     *int `json:",omitempty"` // claimed ones, likewise
	Executions  *int `json:",omitempty"` // that run
	// Of executions that ended on a day, in UTC.
	ExecutionCPUSeconds *int `json:",omitempty"` // user and system
	ExecutionMB         *int `json:",omitempty"` // of output
	// FleetPerDay is what the fleet's machines may cost that work in the namespaces used, on a day in UTC; in the currency of the pools.
	FleetPerDay *float64 `json:",omitempty"`
}

// QuotaNodePool are limits of jobs in a node pool. They hold beside those of the region.
type QuotaNodePool struct {
	NodePool    string
	CPU         *int
	Cores       *int
	MemoryMB    *int
	MemoryMaxMB *int
	Devices     []*QuotaDevice
	NUMA        *drover.NUMAResource // not supported
	SecretsMB   *int                 // not supported
	Storage     *QuotaStorage        // not supported

	Allocations *int `json:",omitempty"` // not Nomad's
}

// QuotaDevice limits devices: "type", "vendor/type" or "vendor/type/name".
type QuotaDevice struct {
	Name        string
	Count       *uint64                  // 0 = none may be used
	Constraints []*constraint.Constraint // not supported
	Affinities  []*constraint.Affinity   // not supported
}

// QuotaStorage limits what is stored.
type QuotaStorage struct {
	VariablesMB   int // of 1024 * 1024 bytes, encrypted
	HostVolumesMB int // not supported
}

// QuotaUsage is what the namespaces of a quota use together.
type QuotaUsage struct {
	Name        string
	Used        map[string]*QuotaLimit // by the limit's hash in base64
	CreateIndex uint64
	ModifyIndex uint64
}

// Limit returns the limit that holds in this state, nil if there is none.
func (q *QuotaSpec) Limit() *QuotaLimit {
	for _, l := range q.Limits {
		if l != nil && l.Region == q.Here {
			return l
		}
	}
	return nil
}
