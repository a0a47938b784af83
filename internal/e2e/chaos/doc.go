// Package chaos breaks a cluster on purpose and checks afterwards what its clients saw. It has tests only.
//
//	scripts/chaos                          half an hour, with a seed of its own
//	scripts/chaos -seed 7 -duration 5m     the faults of seed 7, for five minutes
//	scripts/chaos -leaders -only 'kill -9 a server' -duration 6m
//	                                       the leader is killed some fifty times, now and then with a torn log or another clock
//
// Three servers and five nodes are the real binary, each in a network namespace of the machine; a bridge in a namespace of its
// own joins them, and the clients call from there. So a run needs root, and touches nothing else of the machine. The seed draws
// the faults. They are kill -9, SIGSTOP, slowness (stopped now and then), partitions, a link that works in one direction, a node
// that reaches no server, lost packets, and clocks that jump at a restart. A disk is full under one server, and a log is torn
// when its server dies. The date of a server or node is stepped while it runs, by up to ten minutes; a tag of the build makes
// that possible. Each lasts some seconds; then it is healed. Each is looked at while it is there: a kind of which none did
// anything fails the run.
//
// Beside that clients register jobs, dispatch with tokens, claim runners and execute in them, compare and set jobs and the
// scheduler's configuration, write namespaces, and follow events, through all servers. At the end the histories are
// checked; promises_test.go says what is promised. Some jobs need machines that the fleet buys from an emulated cloud, which now and then
// does what it is asked and does not answer: in the end none of them is left. A failure tells the seed and the timeline of faults.
//
// The kernel has no netem: links lose packets by the packet filter, and none is delayed. Time namespaces move what is
// counted since the boot, for as long as a server runs.
//
// The test owns all goroutines: those of the clients end before histories are checked, those of the faults with the run.
package chaos
