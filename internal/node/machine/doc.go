// Package machine is what an agent does beside its work on a machine that a fleet bought: it joins only once the boot
// probe succeeded, tells when the run probe fails, and powers the machine off when no server answers for long.
//
// A Guard is control as the agent sees it: it stands between the two, and needs nothing of either.
package machine
