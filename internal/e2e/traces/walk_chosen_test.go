package traces

// representativeWalks run with all other tests: of each kind of job some, the short ones of them.
var representativeWalks = []string{
	"service-canary-good", "service-broken-reverts", "service-revert",
	"batch-broken", "batch-versions", "batch-too-large",
	"system-reverts", "system-canaries", "system-drained",
	"sysbatch-again", "sysbatch-purged", "sysbatch-nowhere",
	"periodic-forced", "periodic-versions",
	"parameterized-dispatched", "parameterized-required", "parameterized-once",
}
