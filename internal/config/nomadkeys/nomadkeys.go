package nomadkeys

import (
	"slices"
	"strings"
)

// Unheeded are keys that have no effect here, and why none is missed.
type Unheeded struct {
	Why  string
	Keys []string
}

// Accepted are Nomad's keys that are read and have no effect here, by block, so that a configuration written for Nomad is taken;
// config.Agent.Ignored names those that were given. Whatever is in neither a struct nor this table nor Refused is an error.
var Accepted = map[string][]Unheeded{
	"": {
		{"drivers and devices are part of the program", []string{"plugin_dir"}},
		{"nothing is sent to anybody", []string{"disable_update_check", "disable_anonymous_signature", "reporting"}},
		{"there is no log of events on Windows", []string{"eventlog"}},
		{"it is of Nomad Enterprise: rules of admission do it here", []string{"sentinel"}},
		{"addresses and ports say it", []string{"rpc", "interfaces"}},
	},
	"server": {
		{"there are no volumes of CSI", []string{"csi_volume_claim_gc_threshold", "csi_volume_claim_gc_interval", "csi_plugin_gc_threshold"}},
		{"heartbeats cost no entry of the log", []string{"max_heartbeats_per_second"}},
		{"there is no licence to buy", []string{"license_path", "license_env"}},
		{"the log is raft's own kind of file, and a server waits for others as long as it takes", []string{
			"raft_boltdb", "raft_logstore", "start_timeout",
		}},
		{"servers are not migrated by version", []string{"upgrade_version"}},
		{"a search is bounded by the number of answers", []string{"search"}},
	},
	"server.default_scheduler_config": {{"nodes are looked at until enough fit", []string{"node_limit_for_feasibility_checks"}}},
	"client": {
		{"it is for drivers that see no folder but one below it: ours show a task its folder wherever it lies", []string{"alloc_mounts_dir"}},
		{"bandwidth is not scheduled", []string{"network_speed"}},
		{"the kernel is asked for the processor", []string{"cpu_disable_dmidecode"}},
		{"disk_total_mb and reserved say it", []string{"disk_free_mb"}},
		{"min_dynamic_port and max_dynamic_port say it", []string{"client_min_port", "client_max_port"}},
		{"the kernel and the disk bound what is removed at once", []string{"gc_parallel_destroys"}},
		{"volumes outlive nodes", []string{"gc_volumes_on_node_gc"}},
		{"the node's id is its own, and none of the host's", []string{"no_host_uuid"}},
		{"ports are bound to the addresses that jobs ask for", []string{"bind_wildcard_default_host_network"}},
		{"no driver makes users up: a task's user is what the job names", []string{"users"}},
		{"there are no plugins of that kind", []string{"common_plugin_dir"}},
		{"hooks have no metrics of their own", []string{"disable_allocation_hook_metrics"}},
	},
	"client.artifact": {
		{"Mercurial is not fetched from", []string{"hg_timeout"}},
		{"artifacts are always inspected, and fetched apart from the machine", []string{
			"disable_artifact_inspection", "disable_filesystem_isolation", "set_environment_variables",
		}},
	},
	"client.template": {
		{"templates never leave the task's folder", []string{"disable_file_sandbox"}},
		{"there is neither Consul nor Vault", []string{"consul_retry", "vault_retry"}},
		{"a server answers with its newest state, and catches up with the leader first where it knows no answer", []string{"max_stale"}},
	},
	"telemetry": {
		{"metrics of jobs and allocations have no such labels, and all of them are told", []string{
			"disable_dispatched_job_summary_metrics", "include_alloc_metadata_in_metrics", "allowed_metadata_keys_in_metrics",
			"disable_quota_utilization_metrics", "disable_rpc_rate_metrics_labels", "disable_allocation_hook_metrics",
		}},
		{"/v1/metrics tells totals since the start", []string{"in_memory_collection_interval", "in_memory_retention_period"}},
	},
	"tls": {{"whoever dials must speak TLS, and Go chooses the suite", []string{"rpc_upgrade_mode", "tls_prefer_server_cipher_suites"}}},
	"ui": {
		{"the page shows no hints", []string{"show_cli_hints"}},
		{"there is neither Consul nor Vault to link to", []string{"consul", "vault"}},
	},
	"plugin": {
		{"drivers are part of the program", []string{"args"}},
	},
	"plugin.config": {
		{"output always goes through the task's supervisor", []string{"logging", "disable_log_collection"}},
		{"groups have no container that pauses", []string{"infra_image", "infra_image_pull_timeout"}},
		{"pulls and calls are bounded by what they do", []string{"image_pull_timeout", "client_http_timeout", "container_exists_attempts"}},
		{"there is no such thing in what it is about here", []string{
			"windows_allow_insecure_container_admin", "oom_score_adj", "recover_stopped",
		}},
	},
	"plugin.config.gc": {{"containers go with their tasks", []string{"container", "dangling_containers"}}},
}

// Keys are the keys of a block that are read and have no effect.
func Keys(block string) (keys []string) {
	for _, u := range Accepted[block] {
		keys = append(keys, u.Keys...)
	}
	return keys
}

// Why says why a key of config.Agent.Ignored has no effect; "" if the table does not say.
func Why(ignored string) string {
	if strings.HasPrefix(ignored, "client.options.") {
		return "blocks of plugins and of the client say it"
	}
	for block, list := range Accepted {
		for _, u := range list {
			if slices.ContainsFunc(u.Keys, func(key string) bool {
				key, _, _ = strings.Cut(key, " ") // "name LABEL"
				return ignored == strings.TrimPrefix(block+"."+key, ".")
			}) {
				return u.Why
			}
		}
	}
	return ""
}

// Refused are Nomad's keys that Drover does not take, by block, with the reason: who sets one relies on what does not happen.
var Refused = map[string]map[string]string{
	"telemetry": circonus("api_token", "api_app", "api_url", "submission_interval", "submission_url", "check_id",
		"check_force_metric_activation", "check_instance_id", "check_search_tag", "check_display_name", "check_tags", "broker_id",
		"broker_select_tag"),
}

func circonus(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out["circonus_"+name] = "nothing is sent to Circonus: use statsd_address, datadog_address or Prometheus"
	}
	return out
}
