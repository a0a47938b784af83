package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/validation"
)

// accepted are Nomad's keys that are read and have no effect here, so that a configuration written for Nomad is taken;
// Agent.Ignored names those that were given. Whatever is in neither a struct nor this table is an error.
var accepted = map[string][]string{
	"": {
		"plugin_dir", "enable_syslog", "syslog_facility", "eventlog",
		"log_include_location", "log_rotate_bytes", "log_rotate_duration", "log_rotate_max_files",
		"disable_update_check", "disable_anonymous_signature",
		"sentinel", "reporting", "rpc", "interfaces",
	},
	"server": {
		"enable_event_broker", "event_buffer_size", "job_gc_interval",
		"batch_eval_gc_threshold", "csi_volume_claim_gc_threshold", "csi_volume_claim_gc_interval",
		"csi_plugin_gc_threshold", "acl_token_gc_threshold", "max_heartbeats_per_second",
		"license_path", "license_env", "plan_rejection_tracker", "raft_boltdb",
		"raft_logstore", "raft_protocol", "raft_multiplier", "raft_snapshot_threshold", "raft_snapshot_interval",
		"raft_trailing_logs", "upgrade_version",
		"search", "job_max_priority", "job_default_priority",
		"job_tracked_versions", "start_timeout", "enabled_schedulers",
	},
	"server.default_scheduler_config": {"node_limit_for_feasibility_checks"},
	"client": {
		"alloc_mounts_dir", "preferred_address_family", "network_speed", "cpu_disable_dmidecode", "disk_free_mb",
		"client_min_port", "client_max_port", "gc_parallel_destroys",
		"gc_volumes_on_node_gc", "no_host_uuid",
		"bind_wildcard_default_host_network", "reservable_cores",
		"drain_on_shutdown", "users", "common_plugin_dir", "fingerprint NAME",
		"disable_allocation_hook_metrics", "alloc_dir", "state_dir",
	},
	"client.reserved": {"cores"},
	"client.artifact": {
		"gcs_timeout", "git_timeout", "hg_timeout", "s3_timeout",
		"disable_artifact_inspection", "disable_filesystem_isolation", "filesystem_isolation_extra_paths", "set_environment_variables",
	},
	"client.template": {
		"block_query_wait_time", "consul_retry", "disable_file_sandbox", "max_stale", "nomad_retry", "vault_retry", "wait", "wait_bounds",
	},
	"telemetry": {
		"use_node_name", "statsite_address", "statsd_address", "datadog_address", "datadog_tags", "filter_default",
		"prefix_filter", "disable_dispatched_job_summary_metrics", "include_alloc_metadata_in_metrics",
		"allowed_metadata_keys_in_metrics", "disable_quota_utilization_metrics", "disable_rpc_rate_metrics_labels",
		"disable_allocation_hook_metrics", "in_memory_collection_interval", "in_memory_retention_period",
		"circonus_api_token", "circonus_api_app", "circonus_api_url", "circonus_submission_interval",
		"circonus_submission_url", "circonus_check_id", "circonus_check_force_metric_activation",
		"circonus_check_instance_id", "circonus_check_search_tag", "circonus_check_display_name", "circonus_check_tags",
		"circonus_broker_id", "circonus_broker_select_tag", "disable_hostname", "prometheus_metrics",
	},
	"limits": {"https_handshake_timeout", "rpc_handshake_timeout", "rpc_max_conns_per_client"},
	"tls": {
		"rpc_upgrade_mode", "tls_prefer_server_cipher_suites",
	},
	"ui":     {"show_cli_hints", "content_security_policy", "consul", "vault", "label"},
	"plugin": {"args"},
	"plugin.config": {
		"logging", "disable_log_collection", "infra_image", "infra_image_pull_timeout",
		"image_pull_timeout", "container_exists_attempts",
		"windows_allow_insecure_container_admin", "oom_score_adj", "recover_stopped", "client_http_timeout",
	},
	"plugin.config.gc": {"container", "dangling_containers"},
}

// settle checks what the blocks' structs had no field for, and adds the accepted keys among it to Ignored. Errors: the
// unknown keys.
func (a *Agent) settle() hcl.Diagnostics {
	found := map[string]bool{}
	diags := settleStruct(reflect.ValueOf(a).Elem(), "", found)
	for block, given := range map[string]*Foreign{"consul": a.Consul, "vault": a.Vault} {
		if given != nil && given.Enabled == nil { // false says itself that there is none
			found[block] = true
		}
	}
	if a.TLS != nil && a.TLS.VerifyServerHostname != nil && !*a.TLS.VerifyServerHostname {
		found["tls.verify_server_hostname"] = true
	}
	a.Ignored = slices.Sorted(maps.Keys(found))
	return diags
}

func settleStruct(v reflect.Value, path string, found map[string]bool) (diags hcl.Diagnostics) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("hcl"), ",")
		switch {
		case field.Type == reflect.TypeFor[hcl.Body]():
			if body, ok := value.Interface().(hcl.Body); ok && field.Name == "Rest" {
				diags = append(diags, meant(settleBody(body, path, found), v.Type(), path)...)
			}
			value.SetZero()
		case value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct && !value.IsNil():
			diags = append(diags, settleStruct(value.Elem(), dotted(path, name), found)...)
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Pointer:
			for i := range value.Len() {
				diags = append(diags, settleStruct(value.Index(i).Elem(), dotted(path, name), found)...)
			}
		}
	}
	return diags
}

// unexpected is how HCL says that a key is unknown.
var unexpected = regexp.MustCompile(`^(?:An argument named|Blocks of type) "([^"]+)" (?:is|are) not expected here\.$`)

// meant names the key that was perhaps meant by an unknown one: of the block's struct, or of those that are accepted beside it.
func meant(diags hcl.Diagnostics, block reflect.Type, path string) hcl.Diagnostics {
	var known []string
	for i := range block.NumField() {
		if name, _, _ := strings.Cut(block.Field(i).Tag.Get("hcl"), ","); name != "" {
			known = append(known, name)
		}
	}
	for _, d := range diags {
		said := unexpected.FindStringSubmatch(d.Detail)
		if said == nil {
			continue
		}
		if near := validation.Nearest(said[1], append(known, accepted[path]...)); near != "" {
			d.Detail += " Did you mean \"" + near + "\"?"
		}
	}
	return diags
}

// settleBody looks for the accepted names, each as an argument first, which in JSON a block is too, then as a block.
// "name LABEL" in the table is a block with a label.
func settleBody(body hcl.Body, path string, found map[string]bool) hcl.Diagnostics {
	var arguments, blocks hcl.BodySchema
	for _, entry := range accepted[path] {
		name, label, labelled := strings.Cut(entry, " ")
		header := hcl.BlockHeaderSchema{Type: name}
		if labelled {
			header.LabelNames = []string{label}
		}
		arguments.Attributes = append(arguments.Attributes, hcl.AttributeSchema{Name: name})
		blocks.Blocks = append(blocks.Blocks, header)
	}
	given, rest, diags := body.PartialContent(&arguments)
	if diags.HasErrors() {
		return diags
	}
	nested, diags := rest.Content(&blocks)
	for name := range given.Attributes {
		found[dotted(path, name)] = true
	}
	for _, b := range nested.Blocks {
		found[dotted(path, b.Type)] = true
	}
	return diags
}

func dotted(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
