package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/netguard"
)

// Validate reports everything that is wrong with a merged configuration. Errors: Invalid, each with its key.
func (a *Agent) Validate() error {
	var errs []error
	check := func(ok bool, key, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
		}
	}
	check(True(a.Server.Enabled) || True(a.Client.Enabled), "server.enabled", "neither server nor client is enabled: set one, or use -dev")
	check(a.Dev || a.DataDir != "", "data_dir", "must be set (or use -dev, which keeps nothing)")
	check(slices.Contains([]string{"trace", "debug", "info", "warn", "error"}, a.LogLevel), "log_level", "must be trace, debug, info, warn or error, got %q", a.LogLevel)
	for name, port := range map[string]int{"ports.http": a.Ports.HTTP, "ports.rpc": a.Ports.RPC, "ports.serf": a.Ports.Serf} {
		check(port >= 0 && port <= 65535, name, "must be from 0 to 65535, got %d", port)
	}
	check(net.ParseIP(a.BindAddr) != nil, "bind_addr", "must be an IP address, got %q", a.BindAddr)
	for _, line := range a.Exposed() {
		check(True(a.Insecure), line, "it is reached from outside of this machine; set what it lacks, or 127.0.0.1, or insecure = true (-insecure, DROVER_INSECURE=true) if something else protects it")
	}
	check(a.Server.JoinToken == "" || a.Server.JoinTokenFile == "", "server.join_token_file", "and join_token are set: one of them, please")
	check(a.Client.JoinToken == "" || a.Client.JoinTokenFile == "", "client.join_token_file", "and join_token are set: one of them, please")
	_, sizeErr := Size(a.Server.JobMaxSource, 0)
	check(sizeErr == nil, "server.job_max_source_size", "%v", sizeErr)
	check(a.Server.BootstrapExpect == 1, "server.bootstrap_expect", "must be 1: clusters of several servers are not there yet, got %d", a.Server.BootstrapExpect)
	if True(a.Client.Enabled) && !True(a.Server.Enabled) {
		check(len(a.Client.ServerList()) == 1, "client.servers", "must name one server (host:port of its rpc port), as no server runs in this process")
	}
	check(a.Exec.AlertThreshold >= 0 && a.Exec.AlertThreshold < 1, "exec.prewarming_pool_threshold", "must be from 0 to below 1, got %v", a.Exec.AlertThreshold)
	check(slices.Contains([]string{"", "sandbox", "docker", "raw_exec"}, a.Exec.PoseidonDriver), "exec.poseidon_driver",
		"must be sandbox, docker or raw_exec, not %q", a.Exec.PoseidonDriver)
	check(a.Exec.QueueLength >= 0, "exec.claim_queue_length", "must not be negative, got %d", a.Exec.QueueLength)
	for key, text := range a.durations() {
		if text != "" {
			d, err := time.ParseDuration(text)
			check(err == nil && d >= 0, key, "%q is no duration such as 10s or 1h", text)
		}
	}
	low, high := a.Client.MinDynamicPort, a.Client.MaxDynamicPort
	check(low >= 0 && high >= 0 && low <= 65535 && high <= 65535 && (high == 0 || low <= high), "client.min_dynamic_port",
		"and max_dynamic_port must be ports, the first not above the second, got %d and %d", low, high)
	for _, v := range a.Client.HostVolumes {
		check(v.Path != "", "client.host_volume."+v.Name+".path", "must be set")
	}
	for _, p := range a.Plugins {
		check(slices.Contains([]string{"raw_exec", "sandbox", "docker", "mock_driver"}, p.Name), "plugin."+p.Name, "is not a driver of ours: raw_exec, sandbox, docker, mock_driver")
		errs = append(errs, p.problems()...)
	}
	if t := a.TLS; t != nil && (True(t.HTTP) || True(t.RPC)) {
		check(t.CertFile != "" && t.KeyFile != "", "tls", "needs cert_file and key_file")
		check(!True(t.RPC) || t.CAFile != "", "tls.ca_file", "must be set for rpc: nodes and servers check each other")
	}
	check(a.Vault == nil || !True(a.Vault.Enabled), "vault.enabled", "Drover has no part in Vault: remove it")
	check(a.Consul == nil || !True(a.Consul.Enabled), "consul.enabled", "Drover has no part in Consul: remove it")
	check(a.ACL == nil || !True(a.ACL.Enabled), "acl.enabled", "is not there yet: put a proxy with authentication in front, or use api_token")
	errs = append(errs, a.Fleet.problems()...)
	errs = append(errs, a.Client.Machine.problems()...)
	errs = append(errs, a.Client.Egress.problems()...)
	if artifact := a.Client.Artifact; artifact != nil {
		if _, err := netguard.Networks(artifact.Allow); err != nil {
			errs = append(errs, fmt.Errorf("client.artifact.allow: %w", err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "configuration: %w", errors.Join(errs...))
}

func (a *Agent) durations() map[string]string {
	s, c := a.Server, a.Client
	return map[string]string{
		"server.heartbeat_grace": s.HeartbeatGrace, "server.min_heartbeat_ttl": s.MinHeartbeatTTL,
		"server.job_gc_threshold": s.JobGC, "server.eval_gc_threshold": s.EvalGC, "server.node_gc_threshold": s.NodeGC,
		"server.deployment_gc_threshold": s.DeploymentGC, "client.max_kill_timeout": c.MaxKillTimeout,
		"client.gc_interval": c.GCInterval, "client.gc_min_age": c.GCMinAge, "client.gc_max_age": c.GCMaxAge, "exec.claim_wait": a.Exec.ClaimWait,
		"telemetry.collection_interval": a.Telemetry.CollectionInterval,
	}
}

// ServerList returns the servers that a node dials, from client.servers and client.server_join.
func (c *Client) ServerList() []string {
	list := slices.Clone(c.Servers)
	if c.ServerJoin != nil {
		list = append(list, c.ServerJoin.RetryJoin...)
		list = append(list, c.ServerJoin.StartJoin...)
	}
	return list
}
