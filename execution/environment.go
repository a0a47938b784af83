package execution

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
)

// EnvironmentJobPrefix and the environment's id are the id of the job that keeps its runners.
const EnvironmentJobPrefix = "environment-"

// Environment is what runners are made from. It is stored as a job with one group that has a Pool; exec/environment
// translates in both directions.
type Environment struct {
	ID           string                   `json:"id"`                     // unique in the namespace
	Namespace    string                   `json:"namespace,omitempty"`    // "" = default
	Image        string                   `json:"image"`                  // "host", an OCI reference, or a path to a layout or archive
	Driver       string                   `json:"driver,omitempty"`       // "sandbox" (default), "docker", "podman", "raw_exec"
	Runtime      string                   `json:"runtime,omitempty"`      // docker: runc, runsc
	PoolSize     int                      `json:"poolSize"`               // warm runners to keep
	MaxRunners   int                      `json:"maxRunners,omitempty"`   // warm and claimed together; 0 = no bound
	CPU          int                      `json:"cpu,omitempty"`          // MHz
	MemoryMB     int                      `json:"memoryMB,omitempty"`     // reserved
	MemoryMaxMB  int                      `json:"memoryMaxMB,omitempty"`  // hard limit
	DiskMB       int                      `json:"diskMB,omitempty"`       // size of the writable layer
	PidsLimit    int                      `json:"pidsLimit,omitempty"`    // default 256
	Network      bool                     `json:"network,omitempty"`      // default false: loopback only
	ExposedPorts []uint16                 `json:"exposedPorts,omitempty"` // need Network
	User         string                   `json:"user,omitempty"`         // of unprivileged executions; default: a user without rights
	WorkDir      string                   `json:"workDir,omitempty"`      // default: the image's
	Env          map[string]string        `json:"env,omitempty"`
	IdleTimeout  time.Duration            `json:"idleTimeout,omitempty"` // ns; 0 = none
	Constraints  []*constraint.Constraint `json:"constraints,omitempty"`
	Meta         map[string]string        `json:"meta,omitempty"`
	Identity     *IdentityGrant           `json:"identity,omitempty"` // lets executions have identities; default: none
}

// IdentityGrant says which identities the executions of an environment may ask for.
type IdentityGrant struct {
	Audience []string      `json:"audience"`      // whom tokens may be for; each is for one of them
	TTL      time.Duration `json:"ttl,omitempty"` // ns; of a token at most; default 1 hour
}

// PoolResize asks for another size of an environment's pool.
type PoolResize struct {
	Size *int `json:"size"`          // warm runners to keep
	Was  *int `json:"was,omitempty"` // the size that the caller knows: a conflict if it is another one by now
}

// PoolStatus is how an environment's pool stands.
type PoolStatus struct {
	Environment string `json:"environment"`
	Namespace   string `json:"namespace,omitempty"` // "" = default
	Size        int    `json:"size"`                // wanted warm
	Warm        int    `json:"warm"`                // ready to be claimed
	Starting    int    `json:"starting"`            // placed, not ready
	Queued      int    `json:"queued"`              // not placed
	Claimed     int    `json:"claimed"`
	Waiting     int    `json:"waiting"`             // claims in the queue
	LastError   string `json:"lastError,omitempty"` // why runners do not come, e.g. the image cannot be pulled
	// Final says that waiting does not mend LastError: the registry has no such image. Runners are tried again all the same, less and
	// less often, up to once a minute.
	Final    bool      `json:"final,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"` // when the runner of LastError failed; zero if none did
	// MissingDriver is the driver that runners need and no node has; "" if another reason keeps them from being placed.
	MissingDriver string `json:"missingDriver,omitempty"`
}

// RunnerState is the life of a runner.
type RunnerState string

// Runner states; a claimed runner never returns to warm.
//
//	requested → warming → warm → claimed ⇄ busy → draining → destroyed⟂
const (
	RunnerRequested RunnerState = "requested"
	RunnerWarming   RunnerState = "warming"
	RunnerWarm      RunnerState = "warm"
	RunnerClaimed   RunnerState = "claimed"
	RunnerBusy      RunnerState = "busy"
	RunnerDraining  RunnerState = "draining"
	RunnerDestroyed RunnerState = "destroyed"
)

// Runner is an allocation of an environment's job.
type Runner struct {
	ID          string                `json:"id"` // once claimed; "<key of the environment>-<allocation>"
	AllocID     string                `json:"allocationId"`
	Environment string                `json:"environment"`
	Namespace   string                `json:"namespace,omitempty"` // of the environment; "" = default
	NodeID      string                `json:"nodeId"`
	State       RunnerState           `json:"state"`
	ClaimedAt   time.Time             `json:"claimedAt,omitzero"`
	IdleTimeout time.Duration         `json:"idleTimeout,omitempty"`
	Labels      map[string]string     `json:"labels,omitempty"`
	Env         map[string]string     `json:"env,omitempty"`
	Limits      *drover.Limits        `json:"limits,omitempty"` // of its executions, beside the environment's
	Ports       []network.PortMapping `json:"ports,omitempty"`
}

// ClaimRequest asks for a runner. What differs per claim is bound to the warm runner; a claim never starts cold for it.
type ClaimRequest struct {
	Environment string            `json:"environment"`
	Namespace   string            `json:"namespace,omitempty"`   // of the environment; "" = default
	IdleTimeout time.Duration     `json:"idleTimeout,omitempty"` // ns; 0 = the environment's; < 0 = none
	Env         map[string]string `json:"env,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Limits      drover.Limits     `json:"limits,omitzero"` // of its executions, up to the environment's
	Wait        time.Duration     `json:"wait,omitempty"`  // ns to queue when the pool is empty; 0 = DefaultClaimWait; < 0 = not at all
	// Once is set by a server for a request with an Idempotency-Key: a repetition gets the runner that the first got.
	Once Once `json:"-"`
}

// DefaultClaimWait is how long a claim queues that does not say it: a runner starts in milliseconds, a container in
// seconds.
const DefaultClaimWait = 15 * time.Second
