package traces

// race is a history that can go on in more than one way, in Nomad as well as here: the recording did something at a moment that
// it chose by the clock. The lines are another outcome, which holds to its end.
type race = exception

// Here an allocation runs some milliseconds after it was placed, in Nomad after half a second and more, so that a rollout
// is further after the same two or three seconds.
const further = "The rollout is one allocation further when the next step comes."

var races = []race{
	{"drain-canary", "Two of the old version and not the canary are on the drained node.", []string{
		"3-5 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=4 -> 1 x #0 " +
			"v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=5",
		"3-4 deployments: 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false " +
			"healthy=2 -> 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false healthy=1",
		"5 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=4 -> 1 x #1 v1 " +
			"successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=3",
	}},
	{"drain-canary", "The canary is not on the drained node.", []string{
		"3-4 deployments: 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false " +
			"healthy=2 -> 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false healthy=1",
		"5 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=4 -> 1 x #1 v1 " +
			"successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=3",
	}},
	{"drain-canary", "Two of the old version are on the drained node.", []string{
		"3-5 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=4 -> 1 x #0 " +
			"v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=5",
	}},
	{"drain-force", "Two of the three are on the drained node, and a forced drain takes both at once.", []string{
		"2 live: 1 x v0 g run/running -> 2 x v0 g run/running",
		"2 live: 2 x v0 g run/running healthy=true -> 1 x v0 g run/running healthy=true",
		"2 floor: 2 -> 1",
	}},
	{"drain-while-roll", "One of the new version is on the drained node already, and counts twice.", []string{
		"3-4 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=4 -> 1 x #1 " +
			"v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=5",
	}},
	{"drain-while-roll", "Two of the new version are on the drained node already, and count twice.", []string{
		"3-4 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=4 -> 1 x #1 " +
			"v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=6",
		"3-4 about: 4 x deployment #1 v1 g placed -> 6 x deployment #1 v1 g placed",
		"3-4 about: -> 2 x ended v1 g stop/complete healthy=true",
		"3-4 about: 4 x summary g complete -> 6 x summary g complete",
	}},
	{"drain-force", moved, []string{
		"2 live: 1 x v0 g run/running ->",
		"2 live: 2 x v0 g run/running healthy=true -> 3 x v0 g run/running healthy=true",
	}},
	{"drain-one", moved, []string{
		"2 live: 1 x v0 g run/running ->",
		"2 live: 3 x v0 g run/running healthy=true -> 4 x v0 g run/running healthy=true",
	}},
	{"fail-deployment", further, []string{
		"3-6 live: 3 x v0 g run/running healthy=true -> 2 x v0 g run/running healthy=true",
		"3-4 live: 1 x v1 g run/running healthy=true -> 2 x v1 g run/running healthy=true",
		"5 live: -> 1 x v1 g run/running healthy=true",
		"6 live: 1 x v1 g run/running healthy=true -> 2 x v1 g run/running healthy=true",
		"3-7 deployments: 1 x #1 v1 failed (Deployment marked as failed) g: total=4 canaries=0 promoted=false healthy=1 -> 1 x #1 v1 failed " +
			"(Deployment marked as failed) g: total=4 canaries=0 promoted=false healthy=2",
	}},
	{"fail-deployment-revert", further, []string{
		"3 deployments: 1 x #1 v1 failed (Deployment marked as failed - rolling back to job version 0) g: total=4 canaries=0 promoted=false " +
			"healthy=1 -> 1 x #1 v1 failed (Deployment marked as failed - rolling back to job version 0) g: total=4 canaries=0 promoted=false " +
			"healthy=2",
		"3 about: 2 x summary g complete -> 4 x summary g complete",
	}},
	{"fail-deployment-revert", "The next allocation of the rollout has just begun.", []string{
		"3 about: 2 x summary g complete -> 4 x summary g complete",
	}},
	{"fail-deployment-revert", "The rollout is one allocation further, and the next one has just begun.", []string{
		"3 deployments: 1 x #1 v1 failed (Deployment marked as failed - rolling back to job version 0) g: total=4 canaries=0 promoted=false " +
			"healthy=1 -> 1 x #1 v1 failed (Deployment marked as failed - rolling back to job version 0) g: total=4 canaries=0 promoted=false " +
			"healthy=2",
		"3 about: 1 x deployment #1 v1 g placed -> 3 x deployment #1 v1 g placed",
		"3 about: 1 x ended v0 g stop/complete healthy=true -> 3 x ended v0 g stop/complete healthy=true",
		"3 about: 2 x summary g complete -> 6 x summary g complete",
		"3 made: 1 -> 3",
	}},
	{"pause", further, []string{
		"3 floor: 4 -> 3",
		"3-4 live: 3 x v0 g run/running healthy=true -> 2 x v0 g run/running healthy=true",
		"3-4 live: 1 x v1 g run/running healthy=true -> 2 x v1 g run/running healthy=true",
		"3-4 deployments: 1 x #1 v1 paused (Deployment is paused) g: total=4 canaries=0 promoted=false healthy=1 -> 1 x #1 v1 paused " +
			"(Deployment is paused) g: total=4 canaries=0 promoted=false healthy=2",
	}},
	{"restart-delay", "The task, which ends at once and is restarted for ever, is looked at while it runs.", []string{
		"1 live: 1 x v0 g run/pending healthy=false -> 1 x v0 g run/running healthy=false",
		"1 summary: 1 x g queued=0 running=0 starting=1 lost=0 unknown=0 -> 1 x g queued=0 running=1 starting=0 lost=0 unknown=0",
		"1 tasks: 1 x g/t pending: pending failed=false -> 1 x g/t running: running failed=false",
	}},
	{"roll-superseded", further, []string{
		"3-5 deployments: 1 x #1 v1 cancelled (Cancelled due to newer version of job) g: total=4 canaries=0 promoted=false healthy=2 -> 1 x " +
			"#1 v1 cancelled (Cancelled due to newer version of job) g: total=4 canaries=0 promoted=false healthy=3",
	}},
	{"sibling-fails", "The other task ends after one second, which is min_healthy_time: whichever is seen first.", []string{
		"1 job: 1 x service dead v0 stop=false stable=true -> 1 x service dead v0 stop=false stable=false",
		"1 versions: 1 x v0 stable=true -> 1 x v0 stable=false",
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=1 canaries=0 promoted=false healthy=1 -> 1 x #0 v0 " +
			"failed (Failed due to unhealthy allocations) g: total=1 canaries=0 promoted=false healthy=0",
	}},
	{"system-restarts", "The task ends after one second, which is min_healthy_time: whichever is seen first.", []string{
		"1 job: 1 x system running v0 stop=false stable=true -> 1 x system running v0 stop=false stable=false",
		"1 versions: 1 x v0 stable=true -> 1 x v0 stable=false",
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2 -> 1 x #0 v0 " +
			"failed (Failed due to unhealthy allocations) g: total=2 canaries=0 promoted=false healthy=0",
	}},
	{"system-restarts", "The task ends after one second, which is min_healthy_time: whichever is seen first on a node.", []string{
		"1 job: 1 x system running v0 stop=false stable=true -> 1 x system running v0 stop=false stable=false",
		"1 versions: 1 x v0 stable=true -> 1 x v0 stable=false",
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2 -> 1 x #0 v0 " +
			"failed (Failed due to unhealthy allocations) g: total=2 canaries=0 promoted=false healthy=1",
	}},
	{"stop-start", "The rollout is at its end when the job is stopped.", []string{
		"6 job: 1 x service dead v4 stop=true stable=false -> 1 x service dead v4 stop=true stable=true",
		"6-7 versions: 1 x v3 stable=false -> 1 x v3 stable=true",
		"6-7 versions: 1 x v4 stable=false -> 1 x v4 stable=true",
		"6-7 deployments: 1 x #2 v3 cancelled (Cancelled because job is stopped) g: total=2 canaries=0 promoted=false healthy=1 -> 1 x #2 v3 " +
			"successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
	}},
	{"stop-start", "The rollout is about to end when the job is stopped.", []string{
		"6-7 deployments: 1 x #2 v3 cancelled (Cancelled because job is stopped) g: total=2 canaries=0 promoted=false healthy=1 -> 1 x #2 v3 " +
			"cancelled (Cancelled because job is stopped) g: total=2 canaries=0 promoted=false healthy=2",
	}},
}

// outcomes are the history as it has to end, and the other ways in which it may. The table of exceptions holds in all.
func outcomes(s scenario) ([]scenario, error) {
	first, err := except(s, exceptions)
	if err != nil {
		return nil, err
	}
	out := []scenario{first}
	for _, r := range races {
		if r.scenario == s.name {
			other, err := except(first, []exception{r})
			if err != nil {
				return nil, err
			}
			out = append(out, other)
		}
	}
	return out, nil
}
