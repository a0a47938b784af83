package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/config/size"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/service"
)

// headerName is what HTTP takes for the name of a header.
var headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// problems collects what is wrong with a configuration, each with its key.
type problems struct{ errs []error }

// check notes a problem unless ok.
func (p *problems) check(ok bool, key, format string, args ...any) {
	if !ok {
		p.errs = append(p.errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
}

// oneOf notes a problem unless the text is one of the words. optional allows "".
func (p *problems) oneOf(key, text string, optional bool, words ...string) {
	p.check(slices.Contains(words, text) || optional && text == "", key, "must be %s or %s, got %q",
		strings.Join(words[:len(words)-1], ", "), words[len(words)-1], text)
}

// Validate reports everything that is wrong with a merged configuration. Errors: Invalid, each with its key.
func (a *Agent) Validate() error {
	p := &problems{}
	a.agentProblems(p)
	a.serverProblems(p)
	a.clientProblems(p)
	a.execProblems(p)
	for key, text := range a.durations() {
		if text != "" {
			d, err := time.ParseDuration(text)
			p.check(err == nil && d >= 0, key, "%q is no duration such as 10s or 1h", text)
		}
	}
	for _, block := range a.Plugins {
		p.errs = append(p.errs, block.Problems()...)
	}
	p.errs = append(p.errs, a.Fleet.Problems(a.Clustered())...)
	if len(p.errs) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "configuration: %w", errors.Join(p.errs...))
}

// agentProblems are those of keys that stand in no block, and of the blocks about listeners and access.
func (a *Agent) agentProblems(p *problems) {
	p.check(optional.Value(a.Server.Enabled) || optional.Value(a.Client.Enabled), "server.enabled",
		"neither server nor client is enabled: set one, or use -dev")
	p.check(a.Dev || a.DataDir != "", "data_dir", "must be set (or use -dev, which keeps nothing)")
	a.logProblems(p)
	a.openProblems(p)
	for name := range a.Headers {
		p.check(headerName().MatchString(name), "http_api_response_headers", "%q is no name of a header", name)
	}
	for name, port := range map[string]int{"ports.http": a.Ports.HTTP, "ports.rpc": a.Ports.RPC, "ports.serf": a.Ports.Serf} {
		p.check(port >= 0 && port <= 65535, name, "must be from 0 to 65535, got %d", port)
	}
	p.check(net.ParseIP(a.BindAddr) != nil, "bind_addr", "must be an IP address, got %q", a.BindAddr)
	for _, line := range a.Exposed() {
		p.check(optional.Value(a.Insecure), line, "it is reached from outside of this machine; "+
			"set what it lacks, or 127.0.0.1, or insecure = true (-insecure, DROVER_INSECURE=true) if something else protects it")
	}
	a.tlsProblems(p)
	if l := a.Limits; l != nil {
		p.check(l.MaxBodyBytes >= 0, "limits.max_body_bytes", "must not be negative, got %d", l.MaxBodyBytes)
		l.rateProblems(p)
		l.connectionProblems(p)
	}
	p.check(a.Vault == nil || !optional.Value(a.Vault.Enabled), "vault.enabled", "Drover has no part in Vault: remove it")
	p.check(a.Consul == nil || !optional.Value(a.Consul.Enabled), "consul.enabled", "Drover has no part in Consul: remove it")
	a.accessProblems(p)
	a.auditProblems(p)
	a.dnsProblems(p)
	a.Telemetry.problems(p)
	p.errs = append(p.errs, a.UI.Problems()...)
}

func (a *Agent) serverProblems(p *problems) {
	s := a.Server
	p.check(s.JoinToken == "" || s.JoinTokenFile == "", "server.join_token_file", "and join_token are set: one of them, please")
	_, err := size.Parse(s.JobMaxSource, 0)
	p.check(err == nil, "server.job_max_source_size", "%v", err)
	p.check(optional.Value(s.JobMaxCount) >= 0, "server.job_max_count", "must not be negative, got %d", optional.Value(s.JobMaxCount))
	provider := cmp.Or(s.DefaultServiceProvider, service.ProviderNomad)
	p.check(provider == service.ProviderNomad || provider == service.ProviderConsul, "server.default_service_provider",
		"must be nomad or consul, got %q", provider)
	s.tuningProblems(p)
	a.clusterProblems(p)
	a.keyringProblems(p)
	a.introductionProblems(p)
	p.check(validIssuer(a.Server.OIDCIssuer), "server.oidc_issuer",
		"must be a URL such as https://drover.example.com without query and fragment, got %q", a.Server.OIDCIssuer)
}

func (a *Agent) clientProblems(p *problems) {
	c := a.Client
	p.check(c.JoinToken == "" || c.JoinTokenFile == "", "client.join_token_file", "and join_token are set: one of them, please")
	if optional.Value(c.Enabled) && !optional.Value(a.Server.Enabled) {
		p.check(len(c.ServerList()) > 0, "client.servers",
			"must name at least one server (host:port of its rpc port), as no server runs in this process")
	}
	c.serverProblems(p)
	low, high := c.MinDynamicPort, c.MaxDynamicPort
	p.check(low >= 0 && high >= 0 && low <= 65535 && high <= 65535 && (high == 0 || low <= high), "client.min_dynamic_port",
		"and max_dynamic_port must be ports, the first not above the second, got %d and %d", low, high)
	c.volumeProblems(p)
	a.folderProblems(p)
	a.drainProblems(p)
	if err := validation.ChrootPaths(c.ChrootEnv); err != nil {
		p.check(false, "client.chroot_env", "%v", err)
	}
	c.bridgeProblems(p)
	for _, n := range c.HostNetworks {
		at := "client.host_network." + n.Name
		p.check(n.CIDR != "" || n.Interface != "", at, "needs cidr, interface, or both")
		_, err := netip.ParsePrefix(n.CIDR)
		p.check(n.CIDR == "" || err == nil, at+".cidr", "must be a network such as 10.0.0.0/8, got %q", n.CIDR)
		p.check(n.Name != "default", at, `"default" is the node's first address; choose another name`)
	}
	_, of := c.artifacts()
	p.errs = append(p.errs, of.errs...)
	c.Template.problems(p)
	c.machineProblems(p)
	p.errs = append(p.errs, c.Machine.problems()...)
	p.errs = append(p.errs, c.Egress.problems()...)
	p.errs = append(p.errs, clouds.Problems(c.Fingerprints, c.Options)...)
}

// givesIPv6 reports whether guests can have addresses of the network: unique local ones, or those of the Internet.
func givesIPv6(p netip.Prefix) bool {
	a := p.Addr()
	return a.Is6() && !a.Is4In6() && p.Bits() >= 16 && (a.IsPrivate() || netip.MustParsePrefix("2000::/3").Contains(a))
}

// bridgeProblems are those of the bridge of groups and runners.
func (c *Client) bridgeProblems(p *problems) {
	p.check(c.BridgeName == "" || len(c.BridgeName) <= 15 && bridgeName().MatchString(c.BridgeName), "client.bridge_network_name",
		"must be the name of a device, of at most 15 letters, digits, dots, _ and -, got %q", c.BridgeName)
	subnet, err := netip.ParsePrefix(c.BridgeSubnet)
	fits := err == nil && subnet.Addr().Is4() && subnet.Bits() >= 8 && subnet.Bits() <= 28
	p.check(c.BridgeSubnet == "" || fits, "client.bridge_network_subnet",
		"must be an IPv4 network from /8 to /28 such as 172.27.64.0/20, got %q", c.BridgeSubnet)
	four := 32 - 20 // bits of its addresses
	if fits && c.BridgeSubnet != "" {
		four = 32 - subnet.Bits()
	}
	six, err := netip.ParsePrefix(c.BridgeSubnet6)
	p.check(c.BridgeSubnet6 == "" || err == nil && givesIPv6(six) && 128-six.Bits() >= four, "client.bridge_network_subnet_ipv6",
		"must be an IPv6 network for hosts, from /16 to /%d (as large as bridge_network_subnet) such as fd00:a110:c8::/64, got %q",
		128-four, c.BridgeSubnet6)
}

var bridgeName = lazyregexp.New(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$`)

func (a *Agent) execProblems(p *problems) {
	x := a.Exec
	p.check(x.AlertThreshold >= 0 && x.AlertThreshold < 1, "exec.prewarming_pool_threshold",
		"must be from 0 to below 1, got %v", x.AlertThreshold)
	p.oneOf("exec.poseidon_driver", x.PoseidonDriver, true, "sandbox", "docker", "podman", "raw_exec")
	p.check(x.QueueLength >= 0, "exec.claim_queue_length", "must not be negative, got %d", x.QueueLength)
}

func (a *Agent) durations() map[string]string {
	s, c, access := a.Server, a.Client, a.access()
	wait, bounds := c.Template.waits()
	return map[string]string{
		"log_rotate_duration": a.LogRotateDuration, "limits.https_handshake_timeout": cmp.Or(a.Limits, &Limits{}).HTTPSHandshake,
		"limits.rpc_handshake_timeout": cmp.Or(a.Limits, &Limits{}).RPCHandshake,
		"acl.token_ttl":                access.TokenTTL, "acl.policy_ttl": access.PolicyTTL, "acl.role_ttl": access.RoleTTL,
		"acl.token_min_expiration_ttl": access.TokenMinTTL, "acl.token_max_expiration_ttl": access.TokenMaxTTL,
		"server.heartbeat_grace": s.HeartbeatGrace, "server.min_heartbeat_ttl": s.MinHeartbeatTTL,
		"server.root_key_rotation_threshold": s.RootKeyRotation, "server.root_key_gc_threshold": s.RootKeyGC,
		"server.root_key_gc_interval": s.RootKeyGCInterval,
		"server.job_gc_threshold":     s.JobGC, "server.eval_gc_threshold": s.EvalGC,
		"server.job_gc_interval": s.JobGCInterval, "server.node_gc_threshold": s.NodeGC,
		"server.acl_token_gc_threshold":             s.TokenGC,
		"server.plan_rejection_tracker.node_window": cmp.Or(s.RejectionTracker, &RejectionTracker{}).Window,
		"server.deployment_gc_threshold":            s.DeploymentGC, "client.max_kill_timeout": c.MaxKillTimeout,
		"client.drain_on_shutdown.deadline": a.drainDeadline(),
		"client.gc_interval":                c.GCInterval, "client.gc_min_age": c.GCMinAge, "client.gc_max_age": c.GCMaxAge,
		"server.failover_heartbeat_ttl": s.FailoverHeartbeatTTL, "server.retry_interval": s.RetryInterval,
		"client.artifact.http_read_timeout":       cmp.Or(c.Artifact, &Artifact{}).HTTPReadTimeout,
		"client.artifact.git_timeout":             cmp.Or(c.Artifact, &Artifact{}).GitTimeout,
		"client.artifact.s3_timeout":              cmp.Or(c.Artifact, &Artifact{}).S3Timeout,
		"client.artifact.gcs_timeout":             cmp.Or(c.Artifact, &Artifact{}).GCSTimeout,
		"client.template.wait.min":                wait.Min,
		"client.template.wait.max":                wait.Max,
		"client.template.wait_bounds.min":         bounds.Min,
		"client.template.wait_bounds.max":         bounds.Max,
		"client.template.block_query_wait_time":   cmp.Or(c.Template, &Template{}).BlockWait,
		"client.template.nomad_retry.backoff":     cmp.Or(cmp.Or(c.Template, &Template{}).Retry, &Retry{}).Backoff,
		"client.template.nomad_retry.max_backoff": cmp.Or(cmp.Or(c.Template, &Template{}).Retry, &Retry{}).Max,
		"server.rpc_hold_timeout":                 s.RPCHold,
		"server.batch_eval_gc_threshold":          s.BatchEvalGC,
		"server.raft_snapshot_interval":           s.RaftSnapshotInterval,
		"server.snapshots.interval":               cmp.Or(s.Snapshots, &Snapshots{}).Interval,
		"server.server_join.retry_interval":       cmp.Or(s.ServerJoin, &ServerJoin{}).RetryInterval,
		"autopilot.last_contact_threshold":        cmp.Or(a.Autopilot, &Autopilot{}).LastContactThreshold,
		"autopilot.server_stabilization_time":     cmp.Or(a.Autopilot, &Autopilot{}).StabilizationTime,
		"exec.claim_wait":                         a.Exec.ClaimWait,
		"telemetry.collection_interval":           a.Telemetry.CollectionInterval,
	}
}

// rpcPort is where servers listen for nodes unless they say otherwise.
const rpcPort = 4647

// ServerList returns the servers that a node dials, host:port, from client.servers and client.server_join.
func (c *Client) ServerList() (list []string) {
	join := cmp.Or(c.ServerJoin, &ServerJoin{})
	for _, address := range slices.Concat(c.Servers, join.RetryJoin, join.StartJoin) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(rpcPort))
		}
		if !slices.Contains(list, address) {
			list = append(list, address)
		}
	}
	return list
}

// serverProblems are those of the servers that a node dials.
func (c *Client) serverProblems(p *problems) {
	for _, address := range c.ServerList() {
		host, port, err := net.SplitHostPort(address)
		_, portErr := net.LookupPort("tcp", port)
		switch {
		case strings.Contains(address, "//"):
			p.check(false, "client.servers", "%q has a scheme: want host:port of the server's rpc port", address)
		case strings.Contains(address, "="):
			p.check(false, "client.servers", "%q: servers are not looked up in a cloud; want host:port of the server's rpc port", address)
		default:
			p.check(err == nil && host != "" && !strings.ContainsAny(host, " ,/"), "client.servers",
				"%q is no address: want host:port of the server's rpc port", address)
			p.check(err != nil || portErr == nil && port != "0" && port != "", "client.servers", "%q: %q is no port", address, port)
		}
	}
}

// machineProblems are those of what the node offers of its machine.
func (c *Client) machineProblems(p *problems) {
	reserved := cmp.Or(c.Reserved, &Reserved{}).Cores
	for key, text := range map[string]string{"client.reservable_cores": c.ReservableCores, "client.reserved.cores": reserved} {
		_, err := validation.ParseIDs(text)
		p.check(err == nil, key, "must be cores such as 0,2-3: %v", err)
	}
	p.oneOf("client.preferred_address_family", c.AddressFamily, true, "ipv4", "ipv6")
}

// volumeProblems checks where host volumes are.
func (c *Client) volumeProblems(p *problems) {
	p.check(c.HostVolumesDir == "" || filepath.IsAbs(c.HostVolumesDir), "client.host_volumes_dir",
		"must be an absolute path, got %q", c.HostVolumesDir)
	p.check(c.HostVolumePluginDir == "" || filepath.IsAbs(c.HostVolumePluginDir), "client.host_volume_plugin_dir",
		"must be an absolute path, got %q", c.HostVolumePluginDir)
	for _, path := range c.HostVolumePaths {
		p.check(filepath.IsAbs(path), "client.host_volume_paths", "must be absolute paths, got %q", path)
	}
	for _, v := range c.HostVolumes {
		p.check(v.Path != "", "client.host_volume."+v.Name+".path", "must be set")
	}
}
