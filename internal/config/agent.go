// Package config is the agent's configuration: Default, then files (HCL or JSON), then DROVER_… variables, then flags,
// put together by one Merge.
package config

import (
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Agent is the whole configuration. Keys are Nomad's where Nomad has the key. Booleans are pointers, so that a later
// file can say false.
type Agent struct {
	Name       string `hcl:"name,optional"`       // default: the host's name
	Region     string `hcl:"region,optional"`     // default "global"
	Datacenter string `hcl:"datacenter,optional"` // default "dc1"
	DataDir    string `hcl:"data_dir,optional"`   // default none: -dev keeps nothing
	BindAddr   string `hcl:"bind_addr,optional"`  // default "127.0.0.1"
	LogLevel   string `hcl:"log_level,optional"`  // trace, debug, info (default), warn, error
	LogJSON    *bool  `hcl:"log_json,optional"`
	LogFile    string `hcl:"log_file,optional"`
	APIToken   string `hcl:"api_token,optional"`    // every face asks for it (X-Nomad-Token, Poseidon-Token, Bearer); default none
	Debug      *bool  `hcl:"enable_debug,optional"` // serve /v1/agent/pprof
	Insecure   *bool  `hcl:"insecure,optional"`     // listen beyond loopback without api_token or TLS

	AllowedOrigins []string `hcl:"allowed_origins,optional"` // of web pages that may call the agent, beside its own: "https://ide.example.com"
	AllowedHosts   []string `hcl:"allowed_hosts,optional"`   // names that the agent is called by, beside IP addresses, localhost and the host's name; "*.example.com", "*"

	Ports     *Ports     `hcl:"ports,block"`
	Addresses *Addresses `hcl:"addresses,block"`
	Advertise *Addresses `hcl:"advertise,block"`
	Server    *Server    `hcl:"server,block"`
	Client    *Client    `hcl:"client,block"`
	Exec      *Exec      `hcl:"exec,block"`
	Fleet     *Fleet     `hcl:"fleet,block"`
	Telemetry *Telemetry `hcl:"telemetry,block"`
	Limits    *Limits    `hcl:"limits,block"`
	TLS       *TLS       `hcl:"tls,block"`
	ACL       *Switch    `hcl:"acl,block"`
	UI        *Switch    `hcl:"ui,block"`
	Vault     *Foreign   `hcl:"vault,block"`
	Consul    *Foreign   `hcl:"consul,block"`
	Plugins   []*Plugin  `hcl:"plugin,block"`

	Dev     bool     // set by -dev: everything in one process, nothing kept
	Ignored []string // Nomad's keys that were given and have no effect here
	Rest    hcl.Body `hcl:",remain" json:"-"`
}

// Ports to listen on.
type Ports struct {
	HTTP int `hcl:"http,optional"` // default 4646
	RPC  int `hcl:"rpc,optional"`  // default 4647: nodes and servers
	Serf int `hcl:"serf,optional"` // accepted, unused: servers find each other by server_join
}

// Addresses for listeners, or to tell others.
type Addresses struct {
	HTTP string `hcl:"http,optional"`
	RPC  string `hcl:"rpc,optional"`
	Serf string `hcl:"serf,optional"`
}

// Switch is a block that we only look into for enabled.
type Switch struct {
	Enabled *bool    `hcl:"enabled,optional"`
	Rest    hcl.Body `hcl:",remain" json:"-"`
}

// Foreign configures what Drover has no part in; it may only be switched off.
type Foreign struct {
	Enabled *bool    `hcl:"enabled,optional"`
	Any     hcl.Body `hcl:",remain" json:"-"`
}

// Server is the control plane.
type Server struct {
	Enabled         *bool  `hcl:"enabled,optional"`
	BootstrapExpect int    `hcl:"bootstrap_expect,optional"`  // default 1
	DataDir         string `hcl:"data_dir,optional"`          // default <data_dir>/server
	NumSchedulers   *int   `hcl:"num_schedulers,optional"`    // default: cores
	HeartbeatGrace  string `hcl:"heartbeat_grace,optional"`   // default 10s
	MinHeartbeatTTL string `hcl:"min_heartbeat_ttl,optional"` // default 10s
	JobGC           string `hcl:"job_gc_threshold,optional"`  // default 4h
	EvalGC          string `hcl:"eval_gc_threshold,optional"` // default 1h
	NodeGC          string `hcl:"node_gc_threshold,optional"` // default 24h
	DeploymentGC    string `hcl:"deployment_gc_threshold,optional"`
	JoinToken       string `hcl:"join_token,optional"`          // nodes must show it; default the one made at the first start in data_dir/join-token
	JoinTokenFile   string `hcl:"join_token_file,optional"`     // holds it instead
	JobMaxSource    string `hcl:"job_max_source_size,optional"` // of a job's text that is kept beside it; default "1M", "0" keeps none

	SchedulerConfig *SchedulerConfig `hcl:"default_scheduler_config,block"`
	ServerJoin      *ServerJoin      `hcl:"server_join,block"`
	Rest            hcl.Body         `hcl:",remain" json:"-"`
}

// SchedulerConfig is the scheduler's configuration until somebody changes it over the API.
type SchedulerConfig struct {
	Algorithm     string      `hcl:"scheduler_algorithm,optional"`
	Oversubscribe *bool       `hcl:"memory_oversubscription_enabled,optional"`
	RejectJobs    *bool       `hcl:"reject_job_registration,optional"`
	PauseBroker   *bool       `hcl:"pause_eval_broker,optional"`
	Preemption    *Preemption `hcl:"preemption_config,block"`
	Rest          hcl.Body    `hcl:",remain" json:"-"`
}

// Preemption by job type.
type Preemption struct {
	System   *bool `hcl:"system_scheduler_enabled,optional"`
	SysBatch *bool `hcl:"sysbatch_scheduler_enabled,optional"`
	Batch    *bool `hcl:"batch_scheduler_enabled,optional"`
	Service  *bool `hcl:"service_scheduler_enabled,optional"`
}

// ServerJoin names servers.
type ServerJoin struct {
	RetryJoin     []string `hcl:"retry_join,optional"`
	StartJoin     []string `hcl:"start_join,optional"`
	RetryMax      int      `hcl:"retry_max,optional"`
	RetryInterval string   `hcl:"retry_interval,optional"`
}

// Client is the node agent.
type Client struct {
	Enabled        *bool             `hcl:"enabled,optional"`
	Servers        []string          `hcl:"servers,optional"` // host:port of servers' rpc; empty: the server in this process
	NodeClass      string            `hcl:"node_class,optional"`
	NodePool       string            `hcl:"node_pool,optional"` // default "default"
	Meta           map[string]string // from meta { key = "value" }
	Options        map[string]string // from options { key = "value" }
	MetaBlock      *Free             `hcl:"meta,block"`
	OptionsBlock   *Free             `hcl:"options,block"`
	JoinToken      string            `hcl:"join_token,optional"`        // the server's; default what a server of the same user on this machine left for it
	JoinTokenFile  string            `hcl:"join_token_file,optional"`   // holds it instead
	CPUTotal       int               `hcl:"cpu_total_compute,optional"` // MHz; default measured
	MemoryTotalMB  int               `hcl:"memory_total_mb,optional"`
	DiskTotalMB    int               `hcl:"disk_total_mb,optional"`
	NodeMaxAllocs  int               `hcl:"node_max_allocs,optional"`
	MaxKillTimeout string            `hcl:"max_kill_timeout,optional"` // default 30s
	MinDynamicPort int               `hcl:"min_dynamic_port,optional"`
	MaxDynamicPort int               `hcl:"max_dynamic_port,optional"`
	GCInterval     string            `hcl:"gc_interval,optional"`
	GCDiskUsage    float64           `hcl:"gc_disk_usage_threshold,optional"`
	GCInodeUsage   float64           `hcl:"gc_inode_usage_threshold,optional"`
	GCMaxAllocs    int               `hcl:"gc_max_allocs,optional"`
	GCMinAge       string            `hcl:"gc_min_age,optional"` // logs of ended tasks stay at least so long, unless a person asks. Default 0s
	GCMaxAge       string            `hcl:"gc_max_age,optional"` // and at most. Default 24h
	NoRemoteExec   *bool             `hcl:"disable_remote_exec,optional"`
	CgroupParent   string            `hcl:"cgroup_parent,optional"` // default "drover"

	Reserved    *Reserved     `hcl:"reserved,block"`
	Egress      *Egress       `hcl:"egress,block"`
	Artifact    *Artifact     `hcl:"artifact,block"`
	Machine     *Machine      `hcl:"machine,block"`
	HostVolumes []*HostVolume `hcl:"host_volume,block"`
	ServerJoin  *ServerJoin   `hcl:"server_join,block"`
	Rest        hcl.Body      `hcl:",remain" json:"-"`
}

// Artifact bounds what the node fetches for tasks.
type Artifact struct {
	// Allow are networks (CIDR) and addresses that artifacts may come from although they are special: loopback,
	// link-local, metadata, the machine's own, …. The Internet and private networks are allowed always.
	Allow []string `hcl:"allow,optional"`
	Rest  hcl.Body `hcl:",remain" json:"-"`
}

// Free is a block with keys of the user's choice.
type Free struct {
	Keys hcl.Attributes `hcl:",remain"`
}

// Reserved is kept from allocations.
type Reserved struct {
	CPU           int      `hcl:"cpu,optional"`    // MHz
	MemoryMB      int      `hcl:"memory,optional"` // MB
	DiskMB        int      `hcl:"disk,optional"`   // MB
	ReservedPorts string   `hcl:"reserved_ports,optional"`
	Rest          hcl.Body `hcl:",remain" json:"-"`
}

// HostVolume is a folder that the node offers.
type HostVolume struct {
	Name     string `hcl:"name,label"`
	Path     string `hcl:"path"`
	ReadOnly *bool  `hcl:"read_only,optional"`
}

// Exec is the execution service.
type Exec struct {
	Enabled        *bool         `hcl:"enabled,optional"`                   // default: with the server
	PublicURL      string        `hcl:"public_url,optional"`                // for websocketUrl behind a proxy
	AlertThreshold float64       `hcl:"prewarming_pool_threshold,optional"` // 0..1, default 0: no alert
	QueueLength    int           `hcl:"claim_queue_length,optional"`        // default 1000
	ClaimWait      string        `hcl:"claim_wait,optional"`                // of the Poseidon face; default 15s: a cold start on a busy machine, or of a container, must fit
	NetworkMode    string        `hcl:"network_mode,optional"`              // of environments with network access: "bridge" (default) or "host"
	PoseidonDriver string        `hcl:"poseidon_driver,optional"`           // of environments that Poseidon's face makes: "sandbox" (default) or "docker"
	WebhookAllow   []string      `hcl:"webhook_allow,optional"`             // networks (CIDR) beside public ones that webhooks may reach
	Environments   []*EnvSetting `hcl:"environment,block"`                  // made at start if they are not there
	Nomad          *NomadCluster `hcl:"nomad,block"`                        // keep runners on this cluster instead of here
}

// NomadCluster is an existing Nomad cluster that runners are kept on.
type NomadCluster struct {
	Address   string `hcl:"address"`
	Token     string `hcl:"token,optional"`
	Region    string `hcl:"region,optional"`
	Namespace string `hcl:"namespace,optional"` // default "default"
	CAFile    string `hcl:"ca_file,optional"`
	CertFile  string `hcl:"cert_file,optional"`
	KeyFile   string `hcl:"key_file,optional"`
	Driver    string `hcl:"driver,optional"` // of environments that name none; default docker
}

// EnvSetting is an environment given in the configuration.
type EnvSetting struct {
	ID       string `hcl:"id,label"`
	Image    string `hcl:"image"`
	Driver   string `hcl:"driver,optional"`
	PoolSize int    `hcl:"pool_size,optional"`
	CPU      int    `hcl:"cpu,optional"`
	MemoryMB int    `hcl:"memory,optional"`
	Network  *bool  `hcl:"network,optional"`
}

// Telemetry is about metrics.
type Telemetry struct {
	CollectionInterval string   `hcl:"collection_interval,optional"` // default 1s
	AllocMetrics       *bool    `hcl:"publish_allocation_metrics,optional"`
	NodeMetrics        *bool    `hcl:"publish_node_metrics,optional"`
	Rest               hcl.Body `hcl:",remain" json:"-"`
}

// Limits bound clients.
type Limits struct {
	HTTPMaxConns *int     `hcl:"http_max_conns_per_client,optional"` // default none for those at work, which executions' streams are; of those that wait for a request, 100
	MaxBodyBytes int64    `hcl:"max_body_bytes,optional"`            // ours; default 10 MiB for jobs
	Rest         hcl.Body `hcl:",remain" json:"-"`
}

// TLS configures listeners and calls.
type TLS struct {
	HTTP              *bool    `hcl:"http,optional"`
	RPC               *bool    `hcl:"rpc,optional"`
	CAFile            string   `hcl:"ca_file,optional"`
	CertFile          string   `hcl:"cert_file,optional"`
	KeyFile           string   `hcl:"key_file,optional"`
	VerifyHTTPSClient *bool    `hcl:"verify_https_client,optional"`
	Rest              hcl.Body `hcl:",remain" json:"-"`
}

// Plugin configures a driver, as in Nomad: plugin "raw_exec" { config { enabled = true } }.
type Plugin struct {
	Name   string        `hcl:"name,label"`
	Config *PluginConfig `hcl:"config,block"`
	Rest   hcl.Body      `hcl:",remain" json:"-"`
}

// PluginConfig holds the keys of all drivers; which ones a driver has is checked by Validate.
type PluginConfig struct {
	Enabled *bool `hcl:"enabled,optional"`
	// AllowHost lets jobs mount paths of the machine, AllowHostNetwork lets them have its network.
	AllowHost        *bool  `hcl:"allow_host_mounts,optional"`
	AllowHostNetwork *bool  `hcl:"allow_host_network,optional"`
	ImageDir         string `hcl:"image_dir,optional"`
	Endpoint         string `hcl:"endpoint,optional"`
	NoCgroups        *bool  `hcl:"no_cgroups,optional"`
	AllowPrivileged  *bool  `hcl:"allow_privileged,optional"`
	// The docker driver's, under Nomad's names.
	AllowCaps     []string `hcl:"allow_caps,optional"`
	AllowRuntimes []string `hcl:"allow_runtimes,optional"`
	// What else of a job's containers reaches outside of them: ours. Patterns, as of files.
	AllowDevices        []string       `hcl:"allow_devices,optional"`        // host paths: "/dev/nvidia*"
	AllowNetworks       []string       `hcl:"allow_networks,optional"`       // names of docker networks
	AllowVolumeDrivers  []string       `hcl:"allow_volume_drivers,optional"` // with any options
	AllowSysctls        []string       `hcl:"allow_sysctls,optional"`
	AllowUlimits        []string       `hcl:"allow_ulimits,optional"`
	ExtraLabels         []string       `hcl:"extra_labels,optional"`
	PidsLimit           int64          `hcl:"pids_limit,optional"`
	PullActivityTimeout string         `hcl:"pull_activity_timeout,optional"`
	GC                  *PluginGC      `hcl:"gc,block"`
	Volumes             *PluginVolumes `hcl:"volumes,block"`
	Auth                *PluginAuth    `hcl:"auth,block"`
	TLS                 *PluginTLS     `hcl:"tls,block"`
	Rest                hcl.Body       `hcl:",remain" json:"-"`
}

// Default returns what holds when nobody says otherwise.
func Default() *Agent {
	return &Agent{
		Region: "global", Datacenter: "dc1", BindAddr: "127.0.0.1", LogLevel: "info",
		Ports:     &Ports{HTTP: 4646, RPC: 4647, Serf: 4648},
		Server:    &Server{Enabled: new(false), BootstrapExpect: 1},
		Client:    &Client{Enabled: new(false), NodePool: "default"},
		Exec:      &Exec{QueueLength: 1000, ClaimWait: "15s", NetworkMode: "bridge"},
		Telemetry: &Telemetry{CollectionInterval: "1s"},
	}
}

// DevMode returns what -dev changes: both planes, raw_exec and the scriptable driver allowed, nothing kept. As raw_exec lets
// jobs do all that the agent may, nothing is gained by refusing them the machine's network, its paths and docker's networks.
func DevMode() *Agent {
	return &Agent{
		Dev: true, Server: &Server{Enabled: new(true)}, Client: &Client{Enabled: new(true)},
		Plugins: []*Plugin{
			{Name: "raw_exec", Config: &PluginConfig{Enabled: new(true)}},
			{Name: "mock_driver", Config: &PluginConfig{Enabled: new(true)}}, // as Nomad's development builds
			{Name: "sandbox", Config: &PluginConfig{AllowHostNetwork: new(true)}},
			{Name: "docker", Config: &PluginConfig{
				AllowHostNetwork: new(true), AllowNetworks: []string{"*"}, Volumes: &PluginVolumes{Enabled: new(true)},
			}},
		},
	}
}

// True reports a switch that is set and on.
func True(b *bool) bool { return b != nil && *b }

// Duration parses a duration of the configuration, which Validate has checked; empty is def.
func Duration(s string, def time.Duration) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		return def
	}
	return d
}

// Driver returns the named driver's plugin block, or an empty one.
func (a *Agent) Driver(name string) PluginConfig {
	for _, p := range a.Plugins {
		if p.Name == name && p.Config != nil {
			return *p.Config
		}
	}
	if on, err := strconv.ParseBool(a.Client.Options["driver."+name+".enable"]); err == nil { // Nomad's older way
		return PluginConfig{Enabled: &on}
	}
	return PluginConfig{}
}

// HTTPAddress is where the faces listen.
func (a *Agent) HTTPAddress() string { return a.address("http", a.Ports.HTTP) }

// AdvertisedHTTP is what others are told of where the faces are, given where they are served: advertise.http, with
// that port if it names none; else the address itself, unless it stands for all of the machine's: then host.
func (a *Agent) AdvertisedHTTP(served, host string) string {
	at, port, err := net.SplitHostPort(served)
	if err != nil {
		return served
	}
	if a.Advertise != nil && a.Advertise.HTTP != "" {
		if _, _, err := net.SplitHostPort(a.Advertise.HTTP); err == nil {
			return a.Advertise.HTTP
		}
		return net.JoinHostPort(a.Advertise.HTTP, port)
	}
	if ip := net.ParseIP(at); ip != nil && ip.IsUnspecified() && host != "" {
		return net.JoinHostPort(host, port)
	}
	return served
}

// RPCAddress is where nodes and servers are awaited.
func (a *Agent) RPCAddress() string { return a.address("rpc", a.Ports.RPC) }

func (a *Agent) address(kind string, port int) string {
	host, _ := a.listens(kind)
	return net.JoinHostPort(host, strconv.Itoa(port))
}
