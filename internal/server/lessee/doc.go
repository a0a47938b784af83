// Package lessee runs this server's execution service, and is that service for the faces.
//
// A server that is alone has one for its whole life. Each of several servers has one under an incarnation, to which the state
// machine leases its share of the warm runners. The service hands those out and keeps what was claimed of them: idle timers,
// executions. Each second it tells the leader that it lives (times: control/leases). An incarnation that the leader does not
// hear from stops handing out by itself, and then the leader ends it. Another server gets its claimed runners. What it may have
// handed out without a record is stopped, so that no runner is handed out by two servers. A leader promises nothing to an
// incarnation that has ended, and nothing at all for a second after it stood still. A server that stops gives back all that it
// holds. The claims that it did not record when it was killed stand in its journal, and are proposed before it begins again.
//
// While servers of an older program are in the cluster nothing is leased, and only the leader hands out: unshared.go.
//
// Directory says which server answers for what. Before runners are stopped, the servers that may hand them out withhold them, until their
// own state has what became of them. Runners that are kept on an existing Nomad cluster have no leases: there the leader has the
// service, for as long as it leads.
//
// Run owns the goroutines; they end with its context. The calls by which a leader tells servers to hand out again have a time
// limit of their own, and what waits until such runners are settled ends with their service.
package lessee
