package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/config/plugin"
)

// valid is a configuration of a server that nothing is wrong with.
func valid() *Agent {
	return Merge(Default(), &Agent{DataDir: "/x", Server: &Server{Enabled: new(true)}})
}

// Each rule refuses what breaks it, and names the key.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, valid().Validate())
	nowhere := valid()
	nowhere.DataDir = ""
	require.ErrorContains(t, nowhere.Validate(), "data_dir: must be set")
	nowhere.Dev = true
	require.NoError(t, nowhere.Validate(), "-dev keeps nothing")
	node := func(c Client) *Agent { c.Enabled = new(true); return &Agent{Client: &c} }
	images := func(dir string) *Agent {
		return &Agent{Plugins: []*plugin.Block{{Name: "sandbox", Config: &plugin.Config{ImageDir: dir}}}}
	}
	refuses(t, map[string]refusal{
		"a port too high":         {&Agent{Ports: &Ports{HTTP: 65536}}, "ports.http: must be from 0 to 65535"},
		"a negative port":         {&Agent{Ports: &Ports{RPC: -1}}, "ports.rpc: "},
		"the highest port":        {&Agent{Ports: &Ports{HTTP: 65535}}, ""},
		"an unknown level":        {&Agent{LogLevel: "loud"}, `log_level: must be trace, debug, info, warn or error, got "loud"`},
		"a count below 0":         {&Agent{Server: &Server{JobMaxCount: new(-1)}}, "server.job_max_count: must not be negative, got -1"},
		"no group of routes":      {&Agent{OpenRoutes: []string{"metrics", "jobs"}}, `open_routes: "jobs" is no group of routes: there`},
		"all groups of routes":    {&Agent{OpenRoutes: acl.OpenGroups()}, ""},
		"a provider that is none": {&Agent{Server: &Server{DefaultServiceProvider: "etcd"}}, "server.default_service_provider: must be nomad"},
		"a size that is none":     {&Agent{Server: &Server{JobMaxSource: "big"}}, "server.job_max_source_size: "},
		"two tokens":              {&Agent{Server: &Server{JoinToken: "a", JoinTokenFile: "b"}}, "server.join_token_file: and join_token"},
		"a duration that is none": {&Agent{Server: &Server{JobGC: "soon"}}, `server.job_gc_threshold: "soon" is no duration`},
		"a negative duration":     {&Agent{Exec: &Exec{ClaimWait: "-1s"}}, "exec.claim_wait: "},
		"a threshold of all":      {&Agent{Exec: &Exec{AlertThreshold: 1}}, "exec.prewarming_pool_threshold: "},
		"a negative queue":        {&Agent{Exec: &Exec{QueueLength: -1}}, "exec.claim_queue_length: "},
		"an unknown driver":       {&Agent{Plugins: []*plugin.Block{{Name: "virt"}}}, "plugin.virt: is not a driver of ours"},
		"a relative folder":       {images("x"), "config.image_dir: must be an absolute path"},
		"an absolute folder":      {images("/x"), ""},
		"a delay that is none": {
			&Agent{Plugins: []*plugin.Block{{Name: "docker", Config: &plugin.Config{GC: &plugin.GC{ImageDelay: "0s"}}}}},
			`plugin.docker.config.gc.image_delay: "0s" is no duration`,
		},
		"TLS without files":       {&Agent{TLS: &TLS{HTTP: new(true)}}, "tls: needs cert_file and key_file"},
		"links without CA":        {&Agent{TLS: &TLS{RPC: new(true), CertFile: "c", KeyFile: "k"}}, "tls.ca_file: must be set for rpc"},
		"files without TLS":       {&Agent{TLS: &TLS{CertFile: "c"}}, ""},
		"Vault":                   {&Agent{Vault: &Foreign{Enabled: new(true)}}, "vault.enabled: "},
		"Vault switched off":      {&Agent{Vault: &Foreign{Enabled: new(false)}}, ""},
		"Consul":                  {&Agent{Consul: &Foreign{Enabled: new(true)}}, "consul.enabled: "},
		"access control":          {&Agent{ACL: &ACL{Enabled: new(true)}}, ""},
		"another region's access": {follows(""), `acl.replication_token: missing: policies, roles and global tokens are those of region "far"`},
		"and a token for it":      {follows("t"), ""},
		"lives of tokens":         {&Agent{ACL: &ACL{TokenMinTTL: "2h", TokenMaxTTL: "1h"}}, "acl.token_min_expiration_ttl: must not be above"},
		"a life that is none":     {&Agent{ACL: &ACL{TokenMaxTTL: "1 day"}}, "acl.token_max_expiration_ttl: "},
		"negative bodies":         {&Agent{Limits: &Limits{MaxBodyBytes: -1}}, "limits.max_body_bytes: "},
		"negative rate":           {&Agent{Limits: &Limits{TokenRate: -1}}, "limits.http_requests_per_token: must be from 0"},
		"burst without rate":      {&Agent{Limits: &Limits{AddressBurst: 5}}, "limits.http_burst_per_address: bounds nothing"},
		"limits":                  {&Agent{Limits: &Limits{TokenRate: 0.5, AddressRate: 10, AddressBurst: 5}}, ""},
		"bounded bodies":          {&Agent{Limits: &Limits{MaxBodyBytes: 1 << 20}}, ""},
		"ports the wrong way":     {node(Client{MinDynamicPort: 30000, MaxDynamicPort: 20000}), "client.min_dynamic_port: "},
		"a network of all":        {node(Client{HostNetworks: []*HostNetwork{{Name: "n"}}}), "client.host_network.n: needs cidr, interface,"},
		"no network": {
			node(Client{HostNetworks: []*HostNetwork{{Name: "n", CIDR: "10.0.0.1"}}}), "client.host_network.n.cidr: must be a network such as",
		},
		"the first network": {
			node(Client{HostNetworks: []*HostNetwork{{Name: "default", Interface: "lo"}}}), "client.host_network.default: \"default\" is",
		},
		"a relative path":       {node(Client{HostVolumePaths: []string{"srv"}}), "client.host_volume_paths: must be absolute paths"},
		"relative plugins":      {node(Client{HostVolumePluginDir: "p"}), "client.host_volume_plugin_dir: must be an absolute path"},
		"a relative volume":     {node(Client{HostVolumesDir: "v"}), "client.host_volumes_dir: must be an absolute path"},
		"a volume without path": {node(Client{HostVolumes: []*HostVolume{{Name: "v"}}}), "client.host_volume.v.path: must be set"},
		"a bridge's name":       {node(Client{BridgeName: "a/b"}), "client.bridge_network_name: must be the name of a device"},
		"a long name":           {node(Client{BridgeName: "0123456789abcdef"}), "client.bridge_network_name: "},
	})
}

// So do those of a node.
func TestWhatIsRefusedOfANode(t *testing.T) {
	t.Parallel()
	node := func(c Client) *Agent { c.Enabled = new(true); return &Agent{Client: &c} }
	refuses(t, map[string]refusal{
		"a small subnet":        {node(Client{BridgeSubnet: "10.0.0.0/29"}), "client.bridge_network_subnet: must be an IPv4 network"},
		"a bridge of one's own": {node(Client{BridgeName: "br-1", BridgeSubnet: "10.0.0.0/28", BridgeHairpin: new(false)}), ""},
		"IPv6 on the bridge":    {node(Client{BridgeSubnet6: "fd00::/64"}), ""},
		"too few addresses": {
			node(Client{BridgeSubnet6: "fd00::/117"}),
			"client.bridge_network_subnet_ipv6: must be an IPv6 network for hosts, from /16 to /116",
		},
		"link-local addresses":  {node(Client{BridgeSubnet6: "fe80::/64"}), "client.bridge_network_subnet_ipv6: must be an IPv6 network"},
		"IPv4 as IPv6":          {node(Client{BridgeSubnet6: "10.0.0.0/8"}), "client.bridge_network_subnet_ipv6: must be an IPv6 network"},
		"a hairpin":             {node(Client{BridgeHairpin: new(true)}), ""},
		"egress to a name":      {node(Client{Egress: &Egress{Allow: []string{"x"}}}), `client.egress.allow: "x" is no network`},
		"egress to IPv6":        {node(Client{Egress: &Egress{AllowJobs: []string{"fd00::/8"}}}), ""},
		"egress of too many":    {node(Client{Egress: &Egress{PacketRate: new(maxRate + 1)}}), "client.egress.packet_rate: must be from 0"},
		"egress without bounds": {node(Client{Egress: &Egress{Connections: new(0)}}), ""},
		"tokens without index":  {node(Client{Machine: &Machine{Tokens: []string{"a"}}}), "client.machine.metadata: must be set"},
		"notices from nowhere":  {node(Client{Machine: &Machine{Notices: "here"}}), `client.machine.notices: "here" is no URL`},
		"a machine's duration":  {node(Client{Machine: &Machine{DeadAfter: "1 day"}}), "client.machine.dead_after: "},
	})
}

// refusal is a change of a valid configuration, and what is said to it.
type refusal struct {
	over *Agent
	want string // "": it is taken
}

func refuses(t *testing.T, cases map[string]refusal) {
	t.Helper()
	for name, c := range cases {
		err := Merge(valid(), c.over).Validate()
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), name)
	}
}

// A node in a process of its own needs a server; one beside its server needs none.
func TestServersOfANode(t *testing.T) {
	t.Parallel()
	validate := func(server bool, servers ...string) error {
		a := Merge(Default(), &Agent{DataDir: "/x", Client: &Client{Enabled: new(true), Servers: servers}})
		a.Server.Enabled = &server
		return a.Validate()
	}
	require.ErrorContains(t, validate(false), "client.servers: must name at least one server")
	require.NoError(t, validate(true))
	require.NoError(t, validate(false, "a:1", "b.example", "10.0.0.1", "::1", "[::1]:7"))
	for bad, why := range map[string]string{
		"http://a:4647":     "has a scheme",
		"provider=aws tag=": "not looked up in a cloud",
		"a, b":              "is no address",
		"":                  "is no address",
		":4647":             "is no address",
		"a:0":               `"0" is no port`,
		"a:nope":            `"nope" is no port`,
		"a:70000":           `"70000" is no port`,
	} {
		require.ErrorContains(t, validate(false, "good:1", bad), why, bad)
	}
	list := &Client{Servers: []string{"a", "a:4647", "::1", "[::1]", "b:1"}}
	require.Equal(t, []string{"a:4647", "[::1]:4647", "b:1"}, list.ServerList())
	joined := &Client{Servers: []string{"a:1"}, ServerJoin: &ServerJoin{RetryJoin: []string{"b:1"}, StartJoin: []string{"c:1"}}}
	require.Equal(t, []string{"a:1", "b:1", "c:1"}, joined.ServerList())
	require.Equal(t, []string{"a:1"}, joined.Servers, "the configured list stays")
}

// follows is access control of another region.
func follows(token string) *Agent {
	return &Agent{
		ACL: &ACL{Enabled: new(true), ReplicationToken: token}, Server: &Server{AuthoritativeRegion: "far", RetryJoin: []string{"a"}},
	}
}
