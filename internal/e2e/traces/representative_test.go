package traces

import "slices"

// representative are the histories that run with all other tests: a third of all, with each family and each kind of
// request, the short ones of them. Those that need a cluster to themselves decide how long it takes.
var representative = slices.Concat(
	[]string{"blocked-past-deadline", "canary-fails", "drain-batch", "drain-canary", "ineligible-system", "preempt-system"}, // alone
	[]string{"canary-auto-promote", "canary-set-unhealthy", "canary-two-groups"},
	[]string{"fail-deployment-revert", "first-fails-revert", "in-place-auto-revert", "late-failure", "pause", "priority", "revert", "scale"},
	[]string{
		"roll-back-while", "roll-fails-revert-at-once", "roll-late-failure", "roll-manual-unhealthy-revert", "roll-parallel3-fails",
		"roll-superseded",
	},
	[]string{"absent-command", "reschedule-0-meta", "restart-delay", "restart-recovers", "stop-while-failing"},
	[]string{"blocked-batch", "blocked-memory"},
	[]string{"system-canary", "system-parallel0", "system-restarts", "system-revert"},
	[]string{"sysbatch-runs", "dispatch-stop", "periodic-runs", "purge-register"},
	[]string{"batch-restart", "batch-scale-done"},
	[]string{"alloc-ops", "all-hooks", "deaf", "leader-fails", "max-run", "poststop", "prestart-sidecar", "sibling-fails"},
)
