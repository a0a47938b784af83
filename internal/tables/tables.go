package tables

// The tables, as the store's TableIndex and Watch take them.
const (
	Jobs            = "jobs"
	JobVersions     = "job_versions"
	JobSummaries    = "job_summaries"
	Nodes           = "nodes"
	Allocs          = "allocs"
	Evals           = "evals"
	Deployments     = "deployments"
	Namespaces      = "namespaces"
	NodePools       = "node_pools"
	SchedulerConfig = "scheduler_config"
	Cluster         = "cluster"
	Lessees         = "lessees"
	Autopilot       = "autopilot"
	ScalingEvents   = "scaling_events"
	JobSubmissions  = "job_submissions"
	Executions      = "executions"
	ACLTokens       = "acl_tokens"
	ACLPolicies     = "acl_policies"
	ACLRoles        = "acl_roles"
	AuthMethods     = "acl_auth_methods"
	BindingRules    = "acl_binding_rules"
	OneTimeTokens   = "one_time_tokens"
	ACLBootstrap    = "acl_bootstrap"
	Services        = "services" // registrations; the key of one service is JobKey(namespace, name)
	RootKeys        = "root_keys"
	Variables       = "variables"        // the key of one is JobKey(namespace, path)
	ExecutionsSpent = "executions_spent" // by namespace, of the newest day
	ExecutionSlots  = "execution_slots"  // executions that count in a quota
	Quotas          = "quotas"
	QuotaUsages     = "quota_usages" // what the namespaces of each quota use
	AdmissionRules  = "admission_rules"
	HostVolumes     = "host_volumes" // by id
	VolumeClaims    = "host_volume_claims"
	Revocations     = "revocations" // of certificates
	FleetPools      = "fleet_pools"
	FleetInstances  = "fleet_instances"
	FleetCosts      = "fleet_costs"
)

// More things to watch. Their keys are the node's id, and JobKey.
const (
	// NodeAllocs wakes only when control changes an allocation of the node, not by the node's own updates.
	NodeAllocs = "allocs_by_node"
	// JobAllocs are the allocations of one job, JobEvals its evaluations.
	JobAllocs = "allocs_by_job"
	JobEvals  = "evals_by_job"
)

// JobKey is the key of a job in Watch.
func JobKey(namespace, id string) string { return namespace + "\x00" + id }
