package drover

import "testing"

func TestFaultsOfAnUpdateBlock(t *testing.T) {
	t.Parallel()
	refused(t, JobTypeService, ofGroup, []fault{
		{`{"Update": {"MaxParallel": -1}}`, "job.group[g].Update.MaxParallel: must not be negative, got -1"},
		{`{"Update": {"Stagger": -1}}`, "job.group[g].Update.Stagger: must not be negative"},
		{`{"Update": {"Canary": -1}}`, "job.group[g].Update.Canary: must not be negative"},
		{`{"Update": {"AutoPromote": true}}`, "job.group[g].Update.AutoPromote: needs Canary > 0"},
		{`{"Update": {"HealthCheck": "hope"}}`, `job.group[g].Update.HealthCheck: must be checks, task_states or manual, got "hope"`},
		{`{"Update": {"MinHealthyTime": -1}}`, "job.group[g].Update.MinHealthyTime: must not be negative"},
		{`{"Update": {"HealthyDeadline": 1}}`, "job.group[g].Update.MinHealthyTime: must be less than HealthyDeadline (1ns)"},
		{`{"Update": {"ProgressDeadline": 1}}`, "job.group[g].Update.ProgressDeadline: must be 0 or more than HealthyDeadline"},
		{`{"Migrate": {"MaxParallel": -1}}`, "job.group[g].Migrate.MaxParallel: must not be negative"},
		{`{"Migrate": {"HealthCheck": "hope"}}`, "job.group[g].Migrate.HealthCheck: must be checks or task_states"},
		{`{"Migrate": {"MinHealthyTime": -1}}`, "job.group[g].Migrate.MinHealthyTime: must not be negative"},
		{`{"Migrate": {"HealthyDeadline": 1}}`, "job.group[g].Migrate.MinHealthyTime: must be less than HealthyDeadline (1ns)"},
	})
	refused(t, JobTypeSystem, ofGroup, []fault{
		{`{"Update": {"Canary": 101}}`, "job.group[g].Update.Canary: is a percentage of the nodes in a system job: at most 100, got 101"},
	})
}

func TestFaultsOfPoliciesForFailures(t *testing.T) {
	t.Parallel()
	faults := []fault{
		{`{"RestartPolicy": {"Mode": "retry"}}`, `RestartPolicy.Mode: must be fail or delay, got "retry"`},
		{`{"RestartPolicy": {"Attempts": -1}}`, "RestartPolicy.Attempts: must not be negative, got -1"},
		{`{"RestartPolicy": {"Delay": -1}}`, "RestartPolicy.Delay: must not be negative"},
		{`{"RestartPolicy": {"Interval": 1}}`, "RestartPolicy.Interval: must be at least 5s, got 1ns"},
		{`{"RestartPolicy": {"Attempts": 9000000000000000000}}`, "RestartPolicy: 9000000000000000000 attempts with a delay"},
	}
	refused(t, JobTypeService, ofGroup, faults)
	refused(t, JobTypeService, ofTask, faults)
	limited := func(rest string) string {
		return `{"ReschedulePolicy": {"Unlimited": false, "Attempts": 2` + rest + `}}`
	}
	refused(t, JobTypeService, ofGroup, []fault{
		{`{"ReschedulePolicy": {"Attempts": -1}}`, "job.group[g].ReschedulePolicy.Attempts: must not be negative"},
		{`{"ReschedulePolicy": {"Delay": 1}}`, "job.group[g].ReschedulePolicy.Delay: must be at least 5s, got 1ns"},
		{`{"ReschedulePolicy": {"DelayFunction": "random"}}`, `job.group[g].ReschedulePolicy.DelayFunction: must be constant`},
		{`{"ReschedulePolicy": {"MaxDelay": 1}}`, "job.group[g].ReschedulePolicy.MaxDelay: must be at least Delay (30s), got 1ns"},
		{limited(`, "Interval": 1`), "job.group[g].ReschedulePolicy.Interval: must be at least 15s, got 1ns"},
	})
	refused(t, JobTypeSystem, ofGroup, []fault{
		{`{"ReschedulePolicy": {"Attempts": 1}}`, "job.group[g].ReschedulePolicy: system and sysbatch jobs are never rescheduled"},
	})
	refused(t, JobTypeService, ofGroup, []fault{
		{`{"Disconnect": {"LostAfter": -1}}`, "job.group[g].Disconnect.LostAfter: must not be negative"},
		{`{"Disconnect": {"StopOnClientAfter": -1}}`, "job.group[g].Disconnect.StopOnClientAfter: must not be negative"},
		{`{"Disconnect": {"LostAfter": 1, "StopOnClientAfter": 1}}`, "job.group[g].Disconnect: LostAfter and StopOnClientAfter exclude"},
		{`{"Disconnect": {"Reconcile": "x"}}`, "job.group[g].Disconnect.Reconcile: must be best_score"},
		{
			`{"Disconnect": {"Reconcile": "best_score"}, "MaxClientDisconnect": 3600000000000}`,
			"job.group[g].Disconnect: excludes MaxClientDisconnect",
		},
		{
			`{"Disconnect": {"Reconcile": "best_score"}, "StopAfterClientDisconnect": 3600000000000}`,
			"job.group[g].Disconnect: excludes StopAfterClientDisconnect",
		},
	})
}
