package invariant

import (
	"flag"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// Number is an invariant's number in ARCHITECTURE.md.
type Number uint8

const (
	// Local is a rule of one package, beside the ten: that a state machine makes only the steps that it has.
	Local Number = iota

	// AcknowledgedWrites (1): an acknowledged write is in the state after any crash. control/raftlog checks that an index is
	// answered only when the state has it, and refuses to start when entries are missing between snapshot and log. What an
	// earlier process acknowledged nobody knows after a crash; the simulation and the tests that kill the program do.
	AcknowledgedWrites

	// OneNode (2): no allocation runs on two nodes. control/fsm checks that no plan moves an allocation, and that no node
	// says it runs what is placed on another.
	OneNode

	// WithinCapacity (3): used is at most the capacity, on every node, at every index. control/fsm checks each node on which
	// a plan places something. A machine that registers smaller than it was is not checked: what runs on it stays.
	WithinCapacity

	// HandedOutOnce (4): a runner is handed out at most once. exec/runner's Core checks it before each handout, and
	// control/fsm when the claim is recorded.
	HandedOutOnce

	// OutputBeforeExit (5): the bytes that a program wrote before it ended arrive before its exit, or the receipt says
	// truncated. exec/executor compares what arrived with what the receipt counts.
	OutputBeforeExit

	// NothingOutlives (6): no execution outlives its runner, no process its cgroup. exec/executor checks that no execution
	// goes on for longer than a few minutes after its runner. The kernel removes no cgroup with a process in it, so the
	// other half needs no check: node/cgroup's Remove fails.
	NothingOutlives

	// FailureIsNoSuccess (7): a failed or killed thing is never reported as exit 0. exec/executor checks each receipt,
	// control/fsm each report that an allocation completed.
	FailureIsNoSuccess

	// BusyIsKept (8): no busy instance is destroyed except by a person or the cloud. fleet/pool's Core checks each destroy
	// that it asks for.
	BusyIsKept

	// InstancesOwned (9): every instance that was ever created is owned or destroyed. fleet/pool's Core checks that it knows
	// each machine of the cloud's list that has its owner's tag.
	InstancesOwned

	// EventsIncrease (10): event indexes increase; a subscriber that resumes after index N sees every event after N, or is
	// told that it cannot. control/eventstream checks what is published and what each subscriber gets.
	EventsIncrease
)

var names = [...]string{
	"local", "acknowledged writes", "one node", "within capacity", "handed out once", "output before exit", "nothing outlives",
	"failure is no success", "busy is kept", "instances owned", "events increase",
}

// String returns the short name.
func (n Number) String() string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("invariant %d", uint8(n))
}

var breaches atomic.Uint64

// Breaches returns how many breaches were found in this process; telemetry exports it.
func Breaches() uint64 { return breaches.Load() }

// One that repeats for ever must not fill the disk with its log.
const (
	loggedAll  = 100   // the first breaches, all of which are logged
	loggedThen = 1_000 // of the later ones, each such is
)

// Breach reports that an invariant does not hold. subject is the id of the thing that it is about. In tests it panics with
// a string. The caller decides whether there is one, so that a check which holds costs nothing but its condition.
func Breach(n Number, subject, format string, args ...any) {
	count := breaches.Add(1)
	what := fmt.Sprintf(format, args...)
	if inTest() {
		panic(fmt.Sprintf("invariant %d (%s): %s: %s", uint8(n), n, subject, what))
	}
	if count <= loggedAll || count%loggedThen == 0 {
		slog.Error("invariant breached", "invariant", int(n), "name", n.String(), "subject", subject, "detail", what, "count", count)
	}
}

// inTest reports whether this is a test's binary: only those have its flags. Package testing would say it too, but does not
// belong into the product.
func inTest() bool { return flag.Lookup("test.v") != nil }
