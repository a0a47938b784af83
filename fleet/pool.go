package fleet

// Pool is a pool of the fleet as it is stored: its policy, and what operators want of it.
type Pool struct {
	Name          string
	Policy        *Policy
	Source        string // SourceConfig or FleetSourceAPI: who may change it
	Retiring      bool   // sells nothing more; forgotten once its last machine is gone
	PauseCreates  bool
	PauseDestroys bool
	PauseReason   string
	CreateIndex   uint64
	ModifyIndex   uint64
}

// Where a pool comes from.
const (
	SourceConfig = "config" // the agent's configuration: put there again at each start
	SourceAPI    = "api"
)

// Effective returns the policy with what operators said laid on it. A retiring pool keeps nothing and buys nothing.
func (p *Pool) Effective() *Policy {
	e := *p.Policy
	e.PauseCreates = e.PauseCreates || p.PauseCreates || p.Retiring
	e.PauseDestroys = e.PauseDestroys || p.PauseDestroys
	if p.Retiring {
		e.Min, e.Schedule, e.Standby, e.Retiring = 0, nil, nil, true
	}
	return &e
}

// Identity is who this Drover is to clouds. It is made once and never changes.
type Identity struct {
	Owner string // tag of its machines
	Key   []byte // signs the tokens of machines
	Seed  uint64
}

// InstanceRecord is a machine as the raft log knows it: recorded before it is asked for, kept until it is gone. What
// the cloud and the agents tell comes on top of it.
type InstanceRecord struct {
	Durable

	CreateIndex uint64
	ModifyIndex uint64
}

// Memory is what was learned of a provider's cloud, in the words of whoever learned it.
type Memory struct {
	Provider string
	Text     []byte
}

// Cost is a line of the ledger: what a job cost in a pool on a day.
type Cost struct {
	Day       string // UTC, as 2026-01-31
	Pool      string
	Namespace string
	Job       string  // "" is time that nothing used
	Cost      float64 // in the unit of the policy's prices
	Hours     float64 // of machines; a job that has half a machine for two hours has one
}

// IdleJob names, in Cost.Job, what was paid for machines that nothing used.
const IdleJob = ""
