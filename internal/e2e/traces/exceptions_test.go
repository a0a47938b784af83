package traces

// exception is where this project differs from Nomad on purpose, in one history.
type exception struct {
	scenario string
	reason   string
	lines    []string // what changes in what is expected, see change
}

// The reasons that hold for several histories.
const (
	clientError = "A request that cannot be done is the client's fault, 4xx. Nomad answers 500, which says try again."
	sampled     = "Nomad, too, stops the old and places the new in one plan and has fewer until these run; the recording looked at intervals."
	keptOn      = "Who keeps a node out of scheduling, or a drain away from system jobs, wants what runs there to go on: a new version " +
		"takes its place when the node is eligible again. Nomad ends it."
	noRollout = "Nomad gives the version that follows a failed deployment of a system job none: it is never judged, and never stable to " +
		"go back to."
	purged = "A job that was purged takes its evaluations along. Nomad lists them until they are collected."
	moved  = "What was moved is healthy after ten seconds, which may be before nothing has changed for eight."
	judged = "What fails outside of a deployment is unhealthy. In Nomad that depends on what its node hears of first, the end or the " +
		"judgement."
	restless  = "What fails again and again is replaced again and again, so that nothing is still; the recording ended at its limit."
	restarted = "A task is pending between its end and its restart, in Nomad too, whose nodes report in batches that mostly hide it."
)

// exceptions is the whole table. Each is an expectation of its own, as exact as what it replaces: if the difference
// goes away, or becomes another one, its history fails. (Only a floor is a bound, not an equal.)
var exceptions = []exception{
	{"alloc-ops", restarted, []string{"2-3 floor: 2 -> 1"}},
	{"alloc-ops", clientError, []string{`4 answer: 500 Could not find task runner for task: nope -> 404 task "nope" not found in allocation`}},
	{"alloc-ops", "No machine knows this signal. Nomad accepts it, and the task ends.", []string{
		`6 answer: 200 -> 400 signalling task "t": unknown signal "SIGNOPE"`,
		"6 live: 1 x v0 g run/running ->",
		"6 live: 1 x v0 g run/running healthy=true -> 2 x v0 g run/running healthy=true",
	}},
	{"batch-update-running", sampled, []string{"2 floor: 2 -> 0"}},
	{"blue-green", clientError, []string{"6 answer: 500 can't fail terminal deployment -> 409 can't fail terminal deployment"}},
	{"canary-2", sampled, []string{"4 floor: 3 -> 2"}},
	{"canary-good", clientError, []string{"5 answer: 500 can't promote terminal deployment -> 409 can't promote terminal deployment"}},
	{"canary-late-failure", clientError, []string{
		"3 answer: 500 1 error occurred:\n\t* Task group \"g\" has 0/1 healthy allocations -> 409 Task group \"g\" has 0/1 healthy allocations",
	}},
	{"canary-superseded", clientError, []string{"5 answer: 500 can't promote terminal deployment -> 409 can't promote terminal deployment"}},
	{"canary-old-fails", sampled, []string{"3 floor: 2 -> 1"}},
	{"deaf", restarted, []string{"2 floor: 2 -> 1"}},
	{"dispatch", clientError, []string{
		"3 answer: 500 Dispatch request included unpermitted metadata keys: [no] -> 400 Dispatch request included unpermitted metadata keys: " +
			"[no]",
		`6 answer: 500 Specified job "JOB" is stopped -> 400 Specified job "JOB" is stopped`,
	}},
	{
		"drain-all", "Nomad begins the deployment in a last look at a job of which nothing runs, here it begins when there is room for it.",
		[]string{
			"2 deployments: 1 x #1 v0 running (Deployment is running) g: total=3 canaries=0 promoted=false healthy=0 ->",
		},
	},
	{"drain-cancel", sampled, []string{"4 floor: 1 -> 0"}},
	{"drain-ignore-system", keptOn, []string{
		"3 live: -> 1 x v0 g run/running healthy=true",
		"3 summary: 1 x g queued=0 running=1 starting=0 lost=0 unknown=0 -> 1 x g queued=0 running=2 starting=0 lost=0 unknown=0",
	}},
	{"fail-deployment", clientError, []string{"6 answer: 500 can't promote terminal deployment -> 409 can't promote terminal deployment"}},
	{"ineligible-system", keptOn, []string{
		"3 live: -> 1 x v0 g run/running healthy=true",
		"3 summary: 1 x g queued=0 running=1 starting=0 lost=0 unknown=0 -> 1 x g queued=0 running=2 starting=0 lost=0 unknown=0",
	}},
	{"pause", clientError, []string{"6 answer: 500 can't pause terminal deployment -> 409 can't pause terminal deployment"}},
	{
		"periodic", clientError,
		[]string{`6 answer: 500 force launch for job "JOB" failed: can't force run non-tracked job "JOB" (default)` +
			` -> 400 Specified job "JOB" is stopped`},
	},
	{"periodic-overlap", clientError, []string{"5 answer: 500 cannot update periodic job to being non-periodic -> 400 cannot update " +
		"periodic job to being non-periodic"}},
	{"prestart-sidecar", restarted, []string{"2 floor: 1 -> 0"}},
	{"purge-register", purged, []string{"2 evals: 1 x job-deregister ->", "2 evals: 1 x job-register ->"}},
	{"purge-register", sampled, []string{"4 floor: 2 -> 1"}},
	{"rename-group", sampled, []string{"2 floor: 1 -> 0"}},
	{"revert", clientError, []string{
		"4 answer: 500 can't revert to current version -> 400 can't revert to current version",
		`5 answer: 500 job "JOB" in namespace "default" at version 7 not found -> 404 job "JOB" in namespace "default" at version 7 not found`,
	}},
	{"revert", "To say that an older version is not stable makes that version the current one in Nomad, which is a mistake there.", []string{
		"6-7 job: 1 x service running v1 stop=false stable=false -> 1 x service running v2 stop=false stable=true",
	}},
	{"in-place-restart-policy", "An update in place reaches the running task in all of its parts. Nomad's task keeps its first restart " +
		"policy.", []string{
		"2 live: 1 x v1 g run/running -> 1 x v1 g run/running healthy=true",
		"3 live: -> 1 x v1 g run/running healthy=true",
		"3 job: 1 x service dead v1 stop=false stable=false -> 1 x service running v1 stop=false stable=false",
		"3 summary: 1 x g queued=0 running=0 starting=0 lost=0 unknown=0 -> 1 x g queued=0 running=1 starting=0 lost=0 unknown=0",
		"3 tasks: 1 x g/t failed: dead failed=true -> 1 x g/t running: running failed=false",
		"3 about: 1 x ended v1 g run/failed healthy=false ->",
		"3 about: 1 x summary g failed ->",
	}},
	{"life", purged, []string{"10 evals: 1 x job-deregister ->", "10 evals: 1 x job-register ->"}},
	{"late-failure", restless, []string{"1 quiet: 8 -> 0"}},
	{"late-failure", judged, []string{
		"1 about: 1 x ended v0 g run/failed ->",
		"1 about: 1 x ended v0 g run/failed healthy=false -> 2 x ended v0 g run/failed healthy=false",
		"1 about: 2 x ended v0 g stop/failed ->",
		"1 about: 2 x ended v0 g stop/failed healthy=false -> 4 x ended v0 g stop/failed healthy=false",
	}},
	{"no-update-block", judged, []string{
		"2-3 about: 1 x ended v0 g stop/complete -> 3 x ended v0 g stop/complete",
		"2-3 about: 2 x ended v0 g stop/complete healthy=false ->",
		"2-3 about: 4 x ended v1 g stop/failed ->",
		"2 about: 8 x ended v1 g stop/failed healthy=false -> 12 x ended v1 g stop/failed healthy=false",
		"3 about: 11 x ended v1 g stop/failed healthy=false -> 15 x ended v1 g stop/failed healthy=false",
	}},
	{"no-update-block", moved, []string{"3 live: 3 x v2 g run/running -> 3 x v2 g run/running healthy=true"}},
	{"ok-service-reschedule", restless, []string{"1 quiet: 8 -> 0"}},
	{"ok-service-reschedule", "What fails right after its deployment succeeded is replaced. Nomad forgets it if the evaluation of the " +
		"failure is the one that ends the deployment.", []string{
		"1 job: 1 x service dead v0 stop=false stable=true -> 1 x service pending v0 stop=false stable=true",
		"1 evals: -> 1 x pending alloc-reschedule",
		"1 about: 1 x ended v0 g run/failed healthy=true -> 1 x ended v0 g stop/failed healthy=true",
		"1 about: -> 1 x ended v0 g run/failed healthy=false",
		"1 about: 1 x summary g failed -> 2 x summary g failed",
		"1 made: 1 -> 2",
	}},
	{"reschedule-some", "After a scale down what runs stays, and what failed goes. Nomad goes by the index alone, and nothing is left that " +
		"runs.", []string{
		"2 job: 1 x service dead v1 stop=false stable=false -> 1 x service running v1 stop=false stable=true",
		"2-3 versions: 1 x v1 stable=false -> 1 x v1 stable=true",
		"2 live: -> 1 x v1 g run/running healthy=true",
		"2 deployments: -> 1 x #1 v1 successful (Deployment completed successfully) g: total=1 canaries=0 promoted=false healthy=1",
		"2 summary: 1 x g queued=0 running=0 starting=0 lost=0 unknown=0 -> 1 x g queued=0 running=1 starting=0 lost=0 unknown=0",
		"2 tasks: -> 1 x g/t running: running failed=false",
		"3 deployments: 1 x #1 v2 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2 -> 1 x #1 v1 " +
			"successful (Deployment completed successfully) g: total=1 canaries=0 promoted=false healthy=1",
		"3 deployments: -> 1 x #2 v2 failed (Failed due to unhealthy allocations) g: total=3 canaries=0 promoted=false healthy=2",
		"3 about: 2 x deployment #1 v2 g placed -> 4 x deployment #2 v2 g placed",
		"3 about: -> 2 x deployment #2 v2 g unhealthy",
		"3 about: 2 x summary g failed -> 4 x summary g failed",
	}},
	{"roll-late-failure", restless, []string{"2 quiet: 8 -> 0"}},
	{"roll-late-failure", judged, []string{
		"2 about: 4 x ended v1 g stop/failed ->",
		"2 about: 7 x ended v1 g stop/failed healthy=false -> 11 x ended v1 g stop/failed healthy=false",
	}},
	{"roll-late-failure", "A task starts within milliseconds, so that nobody sees two that are about to.", []string{
		"2 live: 2 x v1 g run/pending -> 2 x v1 g run/running",
		"2 summary: 1 x g queued=0 running=0 starting=2 lost=0 unknown=0 -> 1 x g queued=0 running=2 starting=0 lost=0 unknown=0",
		"2 tasks: 1 x g/t pending: pending failed=false -> 1 x g/t running: running failed=false",
	}},
	{"sysbatch-runs", sampled, []string{"2 floor: 2 -> 0"}},
	{"system", "alloc stop promises that the allocation is replaced. Nomad leaves the node of a system job empty until something else has " +
		"the job looked at.", []string{
		"4 live: -> 1 x v2 g run/running",
		"4 deployments: 1 x #2 v2 successful (Deployment completed successfully) g: total=1 canaries=0 promoted=false healthy=2 -> 1 x #2 v2 " +
			"successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
		"4 summary: 1 x g queued=0 running=1 starting=0 lost=0 unknown=0 -> 1 x g queued=0 running=2 starting=0 lost=0 unknown=0",
	}},
	{"system-canary", sampled, []string{"2-3 floor: 2 -> 1"}},
	{"system-fails", noRollout, []string{
		"3 job: 1 x system running v1 stop=false stable=false -> 1 x system running v1 stop=false stable=true",
		"3 versions: 1 x v1 stable=false -> 1 x v1 stable=true",
		"3 live: 2 x v1 g run/running -> 2 x v1 g run/running healthy=true",
		"3 deployments: -> 1 x #1 v1 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
		"3 about: -> 2 x deployment #1 v1 g placed",
	}},
	{"system-ok", "A failing system allocation is replaced after 30 s, then later and later. In Nomad the next evaluation does it, which " +
		"here happened to come once more.", []string{
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=4 -> 1 x #0 v0 " +
			"successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
		"1 about: 4 x deployment #0 v0 g placed -> 2 x deployment #0 v0 g placed",
		"1 about: 4 x ended v0 g run/failed healthy=true -> 2 x ended v0 g run/failed healthy=true",
		"1 about: 4 x summary g failed -> 2 x summary g failed",
		"1 made: 4 -> 2",
	}},
	{"system-parallel0", "max_parallel = 0 is documented as all at once. Nomad updates one node of a system job and stops there.", []string{
		"2 live: 1 x v0 g run/running healthy=true ->",
		"2 live: 1 x v1 g run/running -> 2 x v1 g run/running",
		"2 floor: 1 -> 0",
	}},
	{"system-revert", noRollout, []string{
		"2 deployments: 1 x #1 v1 failed (Failed due to unhealthy allocations - rolling back to job version 0) g: total=2 canaries=0 " +
			"promoted=false healthy=1 -> 1 x #1 v1 failed (Failed due to unhealthy allocations - rolling back to job version 0) g: total=2 " +
			"canaries=0 promoted=false healthy=0",
		"2 deployments: -> 1 x #2 v2 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
		"2 about: -> 2 x deployment #2 v2 g placed",
	}},
	{"system-update-fails", "A version that failed stops where it failed. Nomad goes on to the other nodes with it.", []string{
		"2 live: -> 1 x v0 g run/running healthy=true",
		"2 summary: 1 x g queued=0 running=0 starting=0 lost=0 unknown=0 -> 1 x g queued=0 running=1 starting=0 lost=0 unknown=0",
		"2 tasks: -> 1 x g/t running: running failed=false",
		"2-3 about: 3 x ended v1 g run/failed healthy=false -> 1 x ended v1 g run/failed healthy=false",
		"2-3 about: 3 x summary g failed -> 1 x summary g failed",
		"2 made: 3 -> 1",
	}},
	{"system-update-fails", noRollout, []string{
		"3 job: 1 x system running v2 stop=false stable=false -> 1 x system running v2 stop=false stable=true",
		"3 versions: 1 x v2 stable=false -> 1 x v2 stable=true",
		"3 live: 2 x v2 g run/running -> 2 x v2 g run/running healthy=true",
		"3 deployments: -> 1 x #2 v2 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
		"3 about: -> 2 x deployment #2 v2 g placed",
	}},
}
