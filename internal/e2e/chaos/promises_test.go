package chaos

// What is promised of several servers, and what is not yet. A line becomes true with the change that makes it so; what is
// not promised is counted and printed all the same.
const (
	// Compare-and-set writes and consistent reads are linearizable.
	promiseLinearizable = true
	// What was acknowledged is at each server, afterwards and for good.
	promiseWrites = true
	// A token starts one child.
	promiseTokens = true
	// A runner is handed to one client.
	promiseClaims = true
	// An execution on a runner whose node lives goes on, whichever server is asked for it.
	promiseExecutions = true
	// Output is never wrong, and what is said to be whole is.
	promiseBytes = true
	// No allocation runs on two nodes.
	promiseOneNode = true
	// What runs on a node that lives goes on when servers do not.
	promiseAllocations = true
	// Nodes reach a server as long as one leads, and all that was registered is run in the end.
	promiseNodes = true
	// No machine is bought without a piece of work of its own, and none is left or forgotten when all work is done.
	promiseMachines = true
	// Who follows events sees all, or is told that it cannot.
	promiseEvents = true
)
