// Package lessee runs this server's execution service, and is that service for the faces.
//
// A server that is alone has one for its whole life. Each of several servers has one, under an incarnation, to which the state
// machine leases its share of the warm runners. It hands out those and keeps what was claimed of them: idle timers, executions.
// Each second it tells the leader that it lives (times: control/leases). One that the leader does not hear from hands out nothing
// any more, and then its incarnation is ended: another server gets its claimed runners, and what it may have handed out without a
// record of it is stopped, so that no runner is handed out by two. A leader promises nothing to an incarnation that has ended, and
// nothing at all for a second after it stood still. A server that stops gives back all. The claims that it did not record when it
// was killed stand in its journal, and are proposed before it begins again.
//
// While servers of an older program are in the cluster nothing is leased, and only the leader hands out: unshared.go.
//
// Directory says which server answers for what, and before runners are stopped their lessee withholds them. Runners that are
// kept on an existing Nomad cluster have no leases: there the leader has the service, for as long as it leads.
//
// Run owns the goroutines; they end with its context. That a server is told to hand out again ends by itself.
package lessee
