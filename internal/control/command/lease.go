package command

import "github.com/drover-project/drover"

// BeginIncarnation makes the server one that warm runners are leased to, under the entry's index as its incarnation. An
// incarnation that the server had before ends, as by EndIncarnation with this one as heir. Result: Begun.
type BeginIncarnation struct {
	Server string
	Evals  []*drover.Evaluation // of the pools that may lose runners
	Time   int64
}

// Begun is the incarnation that began, and the one of the same server that ended with that; 0: there was none.
type Begun struct{ Incarnation, Former uint64 }

// EndIncarnation takes the incarnation's leases away. Claimed runners go to the heir. What is unclaimed may have been handed
// out without a record of it, and is stopped; if Returned, the server itself says that it was not, and others get it. An
// unknown incarnation is ended already: what is still leased to it is dealt with in the same way. If Claimed, only the claimed
// runners go, and the incarnation does not end: its server may come back and say what else it handed out. Result: nil.
type EndIncarnation struct {
	Incarnation uint64
	Heir        uint64 // an incarnation; if it has ended too it is the oldest live one
	Returned    bool
	Claimed     bool
	Evals       []*drover.Evaluation
	Time        int64
}

// RecordRunners records what a server did with the runners that are leased to it: which it handed out, how many more claims
// wait, which it ended. What is not leased to the incarnation is refused. Result: []ClaimResult in the order of Claims.
type RecordRunners struct {
	Incarnation uint64
	Claims      []RunnerClaim
	Demands     []PoolDemand // of this server; the pool has the sum
	Released    []string     // allocations; unknown and ended ones are skipped, and those of others
	Reason      string       // of their release
	Evals       []*drover.Evaluation
	Time        int64
}

// Kind implements Command.
func (*BeginIncarnation) Kind() Kind { return KindBeginIncarnation }

// Kind implements Command.
func (*EndIncarnation) Kind() Kind { return KindEndIncarnation }

// Kind implements Command.
func (*RecordRunners) Kind() Kind { return KindRecordRunners }
