// Package leader runs what only the leading server does: workers that ask the scheduler, the planner, heartbeats,
// periodic jobs, deployments, drains and garbage collection. All of it is restored from the state when leadership is
// won, and forgotten when it is lost. Nothing polls: loops wait for store watches, for the fsm's observer, or for the
// earliest of their deadlines.
//
// What is decided is the deciders' (scheduler, trigger, and the pure functions of this package); here is when. Run owns
// the goroutines of all loops: they end with its context, which is the term of office.
package leader
