package drover

import (
	"maps"
	"strings"
	"time"

	"github.com/drover-project/drover/network"
)

// Node statuses.
const (
	NodeStatusInit         = "initializing"
	NodeStatusReady        = "ready"
	NodeStatusDown         = "down"
	NodeStatusDisconnected = "disconnected"
)

// Node eligibility.
const (
	NodeEligible   = "eligible"
	NodeIneligible = "ineligible"
)

// Node is a machine that runs allocations.
type Node struct {
	ID                    string
	SecretID              string `json:"-"`        // proves the node to the servers; never leaves them
	NoSecretID            string `json:"SecretID"` // always empty: what clients of Nomad find in its place
	Datacenter            string
	Name                  string
	HTTPAddr              string
	TLSEnabled            bool
	Attributes            map[string]string
	NodeResources         *NodeResources
	ReservedResources     *NodeReservedResources
	Resources             *Resources // legacy
	Reserved              *Resources // legacy
	Links                 map[string]string
	Meta                  map[string]string
	NodeClass             string
	ComputedClass         string
	NodePool              string
	CgroupParent          string
	Drain                 bool
	DrainStrategy         *DrainStrategy
	SchedulingEligibility string
	Status                string
	StatusDescription     string
	StatusUpdatedAt       int64 // unix s
	Events                []*NodeEvent
	Drivers               map[string]*DriverInfo
	HostVolumes           map[string]*HostVolumeInfo
	HostNetworks          map[string]*HostNetworkInfo
	LastDrain             *DrainMetadata
	NodeMaxAllocs         int

	// Meta is what the node itself has (StaticMeta), overlaid by what people set at runtime (DynamicMeta, where nil
	// removes a key). StaticMeta is nil while nothing was set at runtime. Control keeps both.
	StaticMeta  map[string]string  `json:"-"`
	DynamicMeta map[string]*string `json:"-"`

	CreateIndex uint64
	ModifyIndex uint64
}

// Ready reports whether allocations may be placed.
func (n *Node) Ready() bool {
	return n != nil && n.Status == NodeStatusReady && n.SchedulingEligibility == NodeEligible && !n.Drain
}

// Condition is what matters most of the node: its status, or where that is ready, that it is draining or ineligible.
func (n *Node) Condition() string { return NodeCondition(n.Status, n.SchedulingEligibility, n.Drain) }

// NodeDraining is the condition of a node that drains.
const NodeDraining = "draining"

// NodeCondition is the condition of a node of which this is known.
func NodeCondition(status, eligibility string, drains bool) string {
	switch {
	case status != NodeStatusReady && status != NodeStatusInit:
	case drains:
		return NodeDraining
	case status == NodeStatusReady && eligibility != NodeEligible:
		return NodeIneligible
	}
	return status
}

// MergeMeta makes Meta of the node's own and of what was set at runtime.
func (n *Node) MergeMeta(own map[string]string, dynamic map[string]*string) {
	n.Meta, n.StaticMeta, n.DynamicMeta = own, nil, nil
	if len(dynamic) == 0 {
		return
	}
	n.StaticMeta, n.DynamicMeta, n.Meta = own, dynamic, map[string]string{}
	maps.Copy(n.Meta, own)
	for k, v := range dynamic {
		if v == nil {
			delete(n.Meta, k)
		} else {
			n.Meta[k] = *v
		}
	}
}

// OwnMeta returns the meta that the node itself has.
func (n *Node) OwnMeta() map[string]string {
	if len(n.DynamicMeta) > 0 {
		return n.StaticMeta
	}
	return n.Meta
}

// Total returns what allocations may use: the node's resources less the reserved ones.
func (n *Node) Total() Capacity {
	var c Capacity
	if r := n.NodeResources; r != nil {
		c = Capacity{r.Cpu.CpuShares, r.Memory.MemoryMB, r.Disk.DiskMB}
	}
	if r := n.ReservedResources; r != nil {
		c = c.Sub(Capacity{int64(r.Cpu.CpuShares), int64(r.Memory.MemoryMB), int64(r.Disk.DiskMB)})
	}
	return c
}

// NodeResources is the machine's size.
type NodeResources struct {
	Cpu            NodeCpuResources
	Memory         NodeMemoryResources
	Disk           NodeDiskResources
	Networks       []*network.Resource
	NodeNetworks   []*NodeNetworkResource `json:",omitempty"`
	Devices        []*NodeDeviceResource
	MinDynamicPort int
	MaxDynamicPort int
}

// NodeNetworkResource is a host network.
type NodeNetworkResource struct {
	Mode       string
	Device     string
	MacAddress string
	Speed      int
	Addresses  []NodeNetworkAddress
}

// NodeNetworkAddress is an address of a host network.
type NodeNetworkAddress struct {
	Family        string
	Alias         string
	Address       string
	ReservedPorts string
	Gateway       string
}

// NodeDeviceResource is a group of equal devices.
type NodeDeviceResource struct {
	Vendor     string
	Type       string
	Name       string
	Instances  []*NodeDevice
	Attributes map[string]any
}

// NodeDevice is one device.
type NodeDevice struct {
	ID                string
	Healthy           bool
	HealthDescription string
}

// NodeCpuResources is in MHz.
type NodeCpuResources struct {
	CpuShares          int64
	TotalCpuCores      uint16
	ReservableCpuCores []uint16
}

// NodeMemoryResources is in MB.
type NodeMemoryResources struct{ MemoryMB int64 }

// NodeDiskResources is in MB.
type NodeDiskResources struct{ DiskMB int64 }

// NodeReservedResources is kept from allocations.
type NodeReservedResources struct {
	Cpu      NodeReservedCpuResources
	Memory   NodeReservedMemoryResources
	Disk     NodeReservedDiskResources
	Networks NodeReservedNetworkResources
}

// NodeReservedCpuResources is in MHz.
type NodeReservedCpuResources struct{ CpuShares uint64 }

// NodeReservedMemoryResources is in MB.
type NodeReservedMemoryResources struct{ MemoryMB uint64 }

// NodeReservedDiskResources is in MB.
type NodeReservedDiskResources struct{ DiskMB uint64 }

// NodeReservedNetworkResources lists ports and ranges: "22,80,8500-8600".
type NodeReservedNetworkResources struct{ ReservedHostPorts string }

// DriverInfo is a driver's fingerprint on a node.
type DriverInfo struct {
	Attributes        map[string]string
	Detected          bool
	Healthy           bool
	HealthDescription string
	UpdateTime        time.Time
}

// HostNetworkInfo is a named host network.
type HostNetworkInfo struct {
	Name          string
	CIDR          string
	Interface     string
	ReservedPorts string
}

// NodeEvent is a line of a node's history.
type NodeEvent struct {
	Message     string
	Subsystem   string
	Details     map[string]string
	Timestamp   time.Time
	CreateIndex uint64
}

// DrainSpec asks for a drain. Deadline < 0: now, by force; 0: no deadline.
type DrainSpec struct {
	Deadline         time.Duration
	IgnoreSystemJobs bool
	// MoveBatch is ours: batch work that is not done by the deadline begins anew on another node. Without it, as on
	// Nomad, it ends there: what a person drains need not be repeatable.
	MoveBatch bool `json:",omitempty"`
}

// DrainStrategy is a drain under way.
type DrainStrategy struct {
	DrainSpec
	ForceDeadline time.Time
	StartedAt     time.Time
}

// DrainMetadata tells of the last drain.
type DrainMetadata struct {
	StartedAt  time.Time
	UpdatedAt  time.Time
	Status     string
	AccessorID string
	Meta       map[string]string
}

// NodePool groups nodes; a job names one.
type NodePool struct {
	Name                   string
	Description            string
	Meta                   map[string]string
	SchedulerConfiguration *NodePoolSchedulerConfiguration
	NodeIdentityTTL        string // a duration such as "720h0m0s"; accepted and stored
	CreateIndex            uint64
	ModifyIndex            uint64
}

// NodePoolSchedulerConfiguration overrides the cluster's.
type NodePoolSchedulerConfiguration struct {
	SchedulerAlgorithm            string
	MemoryOversubscriptionEnabled *bool
}

// Scheduler algorithms.
const (
	SchedulerBinpack = "binpack"
	SchedulerSpread  = "spread"
)

// SchedulerConfiguration is cluster wide.
type SchedulerConfiguration struct {
	SchedulerAlgorithm            string
	PreemptionConfig              PreemptionConfig
	MemoryOversubscriptionEnabled bool
	RejectJobRegistration         bool
	PauseEvalBroker               bool
	NodeLimitForFeasibilityChecks uint // accepted and stored: all nodes are looked at anyway
	CreateIndex                   uint64
	ModifyIndex                   uint64
}

// PreemptionConfig switches preemption on by job type.
type PreemptionConfig struct {
	SystemSchedulerEnabled   bool
	SysBatchSchedulerEnabled bool
	BatchSchedulerEnabled    bool
	ServiceSchedulerEnabled  bool
}

// Lookup returns what a job can say of a node between the braces of ${…}: node.…, attr.… and meta.…. It reports false for what the node
// does not have, and for all of a nil node.
func (n *Node) Lookup(name string) (string, bool) {
	if n == nil {
		return "", false
	}
	if key, ok := strings.CutPrefix(name, "attr."); ok {
		v, found := n.Attributes[key]
		return v, found
	}
	if key, ok := strings.CutPrefix(name, "meta."); ok {
		v, found := n.Meta[key]
		return v, found
	}
	switch name {
	case "node.unique.id":
		return n.ID, true
	case "node.unique.name":
		return n.Name, true
	case "node.datacenter":
		return n.Datacenter, true
	case "node.class":
		return n.NodeClass, true
	case "node.pool":
		return n.NodePool, true
	case "node.region":
		return n.Attributes["node.region"], true
	}
	return "", false
}
