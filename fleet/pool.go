package fleet

import "slices"

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

// Identity is who this Drover is to clouds. Owner is made once and never changes.
type Identity struct {
	Owner string // tag of its machines, unless the configuration gives another
	Key   []byte // signs the tokens of machines
	Seed  uint64

	// Also are further tags of machines that are ours: what the configuration gave, or gives.
	Also []string
	// Former are the tags of clusters whose archives were restored here. They may live on somewhere: a machine of theirs becomes
	// ours when its agent calls here, and nobody here destroys it before.
	Former []string
}

// Owns reports whether machines with the tag are surely ours.
func (i *Identity) Owns(tag string) bool {
	return tag != "" && (tag == i.Owner || slices.Contains(i.Also, tag))
}

// Called returns the identity of a fleet whose machines have this tag, too.
func (i *Identity) Called(tag string) Identity {
	next := *i
	if tag != "" && !i.Owns(tag) {
		next.Also = append(slices.Clone(i.Also), tag)
	}
	next.Former = slices.DeleteFunc(slices.Clone(i.Former), next.Owns)
	return next
}

// Restored returns the identity after an archive's state was restored: the key is the archive's, because its machines have tokens
// of it, and the names remain the present ones. Those of the archive are added: as ours if one of them was ours before, and else as
// those of another cluster. Either may be nil: the present one in a state that never had a fleet, which gets no Owner by this.
func Restored(present, archived *Identity) *Identity {
	if archived == nil {
		return present
	}
	if present == nil {
		present = &Identity{}
	}
	next := Identity{Owner: present.Owner, Key: archived.Key, Seed: archived.Seed, Also: slices.Clone(present.Also)}
	theirs := append([]string{archived.Owner}, archived.Also...)
	former := slices.Concat(present.Former, archived.Former)
	if slices.ContainsFunc(theirs, present.Owns) {
		next.Also = append(next.Also, theirs...)
	} else {
		former = append(former, theirs...)
	}
	slices.Sort(next.Also)
	next.Also = slices.DeleteFunc(slices.Compact(next.Also), func(tag string) bool { return tag == "" || tag == next.Owner })
	slices.Sort(former)
	next.Former = slices.DeleteFunc(slices.Compact(former), func(tag string) bool { return tag == "" || next.Owns(tag) })
	return &next
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
