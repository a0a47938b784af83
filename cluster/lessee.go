package cluster

// Lessee is a server that may hand out warm runners, in one life of its execution service. A warm runner is leased to one
// incarnation (Allocation.Lease) when it becomes running, and only that one hands it out.
type Lessee struct {
	Server      string
	Incarnation uint64         // the index of the entry that began it: no other ever has it
	Demands     map[string]int // by namespace/job: how many runners claims wait for at this server; without zeros

	ModifyIndex uint64
}
