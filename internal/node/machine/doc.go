// Package machine is what an agent does beside its work on a machine that a fleet bought. It joins only once the boot probe
// succeeded, tells when the run probe fails, and powers the machine off when no server answers for long.
//
// It also finds the machine's join token where a batch was bought together (LaunchToken). Where the links between agents are
// mutual TLS, it gets the machine its certificate (Enrollment), as it does for any node that joins with a token which names the
// server's authority. Guard.Run owns the probes' goroutines; everything else runs in its caller's.
//
// A Guard is control as the agent sees it: it stands between the two, and needs nothing of either.
package machine
