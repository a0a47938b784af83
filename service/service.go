package service

import (
	"strings"
	"time"

	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/workload"
)

// Providers of services.
const (
	ProviderNomad  = "nomad" // here: registered by the cluster itself
	ProviderConsul = "consul"
)

// Address modes of a service: which address it is registered with.
const (
	AddressModeAuto      = "auto"       // as host; of a service with an address of its own, that
	AddressModeHost      = "host"       // the node's address and port
	AddressModeAlloc     = "alloc"      // that in the allocation's own network
	AddressModeAllocIPv6 = "alloc_ipv6" // its IPv6 one
	AddressModeDriver    = "driver"     // that of the driver's network, where it makes one
)

// AddressModes lists them.
func AddressModes() []string {
	return []string{AddressModeAuto, AddressModeHost, AddressModeAlloc, AddressModeAllocIPv6, AddressModeDriver}
}

// Service is a name under which others find what an allocation serves.
type Service struct {
	Name        string
	Provider    string // nomad, or consul, which there is none of
	PortLabel   string // label or number
	AddressMode string // default auto
	Address     string // instead of one of the node's or the allocation's
	TaskName    string
	OnUpdate    string
	Cluster     string // default "default"
	Tags        []string
	CanaryTags  []string
	Meta        map[string]string
	CanaryMeta  map[string]string
	Checks      []map[string]any // package servicecheck reads them
	Weights     map[string]any
	Connect     map[string]any

	// CheckRestart is that of all checks, which a registration gives to each.
	CheckRestart *CheckRestart `json:",omitempty" codec:"-"`

	// What follows is Consul's: it is read to be seen, and not stored.

	EnableTagOverride bool               `json:",omitempty" codec:"-"`
	TaggedAddresses   map[string]string  `json:",omitempty" codec:"-"`
	Identity          *workload.Identity `json:",omitempty" codec:"-"`
	Kind              string             `json:",omitempty" codec:"-"`
}

// CheckRestart restarts the task of a check that fails so often in a row.
type CheckRestart struct {
	Limit          int            // 0 = never
	Grace          *time.Duration // after a start, before failures count; default 1s
	IgnoreWarnings bool
}

// What a failing check means for a rollout.
const (
	OnUpdateRequireHealthy = "require_healthy"
	OnUpdateIgnoreWarnings = "ignore_warnings"
	OnUpdateIgnore         = "ignore"
)

// Registration is one place where a service is found. It follows from its allocation, while that runs.
type Registration struct {
	ID          string
	ServiceName string
	Namespace   string
	NodeID      string
	Datacenter  string
	JobID       string
	AllocID     string
	Tags        []string
	Address     string
	Port        int
	CreateIndex uint64 // the allocation's
	ModifyIndex uint64 // the allocation's AllocModifyIndex
	Unhealthy   bool   `json:",omitempty"` // one of its checks does not pass now, or has not been carried out yet. Ours
}

// Statuses of a check.
const (
	CheckPending = "pending"
	CheckSuccess = "success"
	CheckFailure = "failure"
)

// CheckStatus is what a check of a service found last.
type CheckStatus struct {
	ID         string
	Check      string
	Group      string
	Mode       string // healthiness, or readiness if a rollout does not wait for it
	Output     string
	Service    string
	Task       string
	Status     string
	StatusCode int   // of an http check that was answered
	Timestamp  int64 // unix seconds
}

// Canonicalize fills in the defaults. job is the job's name, task is "" for services of the group. A name may be made of ${JOB},
// ${TASKGROUP}, ${TASK} and ${BASE}, which is all three.
func Canonicalize(job, group, task string, list []*Service) {
	base := job + "-" + group
	if task != "" {
		base += "-" + task
	}
	names := strings.NewReplacer("${JOB}", job, "${TASKGROUP}", group, "${TASK}", task, "${BASE}", base)
	for _, s := range list {
		if s == nil {
			continue
		}
		optional.Default(&s.Name, base)
		s.Name = names.Replace(s.Name)
		optional.Default(&s.Provider, ProviderNomad)
		optional.Default(&s.AddressMode, AddressModeAuto)
		optional.Default(&s.OnUpdate, OnUpdateRequireHealthy)
		optional.Default(&s.Cluster, "default")
	}
}
