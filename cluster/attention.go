package cluster

import "time"

// Attention is how a cluster is, and what of it wants attention, as far as its reader may see it.
type Attention struct {
	At       time.Time `json:"at"`       // when the leader looked
	State    string    `json:"state"`    // OK, Weak or Broken: the worst of the areas
	Areas    []Area    `json:"areas"`    // always in the same order
	Concerns []Concern `json:"concerns"` // the worst first
}

// Area is one of the things that a cluster is made of.
type Area struct {
	Name  string `json:"name"`  // one of the areas below
	State string `json:"state"` // OK, Weak or Broken: the worst of its concerns
	Says  string `json:"says"`  // a sentence with its numbers
}

// The areas.
const (
	AreaServers      = "servers"
	AreaNodes        = "nodes"
	AreaEvaluations  = "evaluations"
	AreaDeployments  = "deployments"
	AreaEnvironments = "environments"
	AreaFleet        = "fleet"
	AreaVolumes      = "volumes"
)

// Concern is one thing that wants attention.
type Concern struct {
	Code  string `json:"code"`  // what it is, for programs: one of the codes below
	Area  string `json:"area"`  // where it belongs
	State string `json:"state"` // Weak or Broken
	// Subject is the id of what it is about: a server, node, job, environment, pool, machine or volume, as the code says. It is "" of
	// a concern that stands for several which are not told one by one.
	Subject   string    `json:"subject,omitempty"`
	Namespace string    `json:"namespace,omitempty"` // of a job, an environment or a volume
	Name      string    `json:"name,omitempty"`      // of the subject, for people
	Count     int       `json:"count"`               // how many things it is about
	Since     time.Time `json:"since,omitzero"`      // zero: not known
	Says      string    `json:"says"`                // what is wrong, and why
	Next      string    `json:"next,omitempty"`      // the command that tells more or mends it
}

// The codes of concerns.
const (
	ServerUnhealthy    = "server.unhealthy"
	ServersOneFromLoss = "servers.no_tolerance" // one more failure stops the cluster
	NodesNone          = "nodes.none_ready"     // there are nodes, and none takes work
	NodeDown           = "node.down"
	NodeDisconnected   = "node.disconnected"
	NodeDriver         = "node.driver" // a driver that it has does not work
	JobNotPlaced       = "job.not_placed"
	JobNotScheduled    = "job.not_scheduled" // its evaluation waits for a scheduler
	DeploymentFailed   = "deployment.failed"
	DeploymentStalled  = "deployment.stalled"
	DeploymentPromote  = "deployment.promotion" // waits for a person
	DeploymentPaused   = "deployment.paused"
	ClaimsWait         = "environment.waiting"
	EnvironmentFails   = "environment.failing" // its runners do not come up
	EnvironmentShort   = "environment.short"   // below its size, and what lacks is not placed
	PoolProblem        = "pool.problem"        // its provider cannot be used
	PoolBudget         = "pool.budget"
	PoolPaused         = "pool.paused"
	MachineError       = "machine.error"
	MachineLost        = "machine.lost" // its agent is silent, and it costs
	MachineOrphaned    = "machine.orphaned"
	MachineHeld        = "machine.held"       // idle for long, because somebody holds it
	VolumePending      = "volume.pending"     // its node has not made it yet, for long
	VolumeDeleting     = "volume.deleting"    // nor deleted it
	VolumeUnavailable  = "volume.unavailable" // allocations cannot mount it
	AreaUnknown        = "area.unknown"       // what it is could not be found out
)

// Viewer is whom an Attention is for: what it says of areas that they may not see is left out.
type Viewer struct {
	Servers, Nodes, Fleet bool
	Jobs, Runners         func(namespace string) bool // of the namespace, or of some one for "*"
	Volumes               func(namespace string) bool // of the namespace, or of some one for "*"
}
