package config

import (
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/config/pages"
	"github.com/drover-project/drover/internal/config/plugin"
)

// Agent is the whole configuration. Keys are Nomad's where Nomad has the key.
//
// Booleans are pointers, so that a later file can say false.
type Agent struct {
	Name       string `hcl:"name,optional"`       // of the node and of the server; default: the name of the host
	Region     string `hcl:"region,optional"`     // name of the region that the agent is in
	Datacenter string `hcl:"datacenter,optional"` // name of the datacenter that the node is in
	// folder of the log, of the state and of the images; path; default: none with -dev, else it must be set
	DataDir  string `hcl:"data_dir,optional"`
	BindAddr string `hcl:"bind_addr,optional"` // IP address that listeners are on, unless addresses says otherwise
	LogLevel string `hcl:"log_level,optional"` // least level that is logged: trace, debug, info, warn or error
	LogJSON  *bool  `hcl:"log_json,optional"`  // write log lines as JSON; default false
	// append log lines to this file too, or to drover.log in this folder; path
	LogFile string `hcl:"log_file,optional"`
	// size that the log's file does not exceed: it is renamed, and another begun; 0 is no limit; bytes; default 0
	LogRotateBytes int64 `hcl:"log_rotate_bytes,optional"`
	// age at which that happens to it; 0s is never; duration; default 24h
	LogRotateDuration string `hcl:"log_rotate_duration,optional"`
	LogRotateMaxFiles int    `hcl:"log_rotate_max_files,optional"` // former files that stay; 0 is all; default 0
	// name the place in the code that a line of the log is from; default false
	LogLocation *bool `hcl:"log_include_location,optional"`
	Syslog      *bool `hcl:"enable_syslog,optional"` // send log lines to the machine's syslog, too; default false
	// facility of the lines in the syslog, as syslog names them; default LOCAL0
	SyslogFacility string `hcl:"syslog_facility,optional"`
	// token whose holder may do everything; every face asks for it (X-Nomad-Token, Poseidon-Token, Bearer), unless access control is on
	APIToken string `hcl:"api_token,optional"`
	Debug    *bool  `hcl:"enable_debug,optional"` // serve /v1/agent/pprof; default: true with -dev
	Insecure *bool  `hcl:"insecure,optional"`     // listen beyond loopback without api_token or TLS; default false
	// when it is interrupted (SIGINT) a server leaves the cluster for good, and a node drains if it has drain_on_shutdown; default false
	LeaveOnInterrupt *bool `hcl:"leave_on_interrupt,optional"`
	// the same when it is terminated (SIGTERM); default false
	LeaveOnTerminate *bool `hcl:"leave_on_terminate,optional"`

	// origins of web pages that may call the agent, beside its own, such as "https://ide.example.com"
	AllowedOrigins []string `hcl:"allowed_origins,optional"`
	// names that the agent is called by, beside IP addresses, localhost and the name of the host: "*.example.com", "*"
	AllowedHosts []string `hcl:"allowed_hosts,optional"`
	// groups of routes that need no token: health, status, keys, version, document, metrics; default: all but metrics
	OpenRoutes []string `hcl:"open_routes,optional"`

	Headers      map[string]string // from http_api_response_headers { NAME = "value" }
	HeadersBlock *Free             `hcl:"http_api_response_headers,block"` // Headers of every answer of the faces.

	Ports     *Ports          `hcl:"ports,block"`
	Addresses *Addresses      `hcl:"addresses,block"`
	Advertise *Addresses      `hcl:"advertise,block"`
	Server    *Server         `hcl:"server,block"`
	Autopilot *Autopilot      `hcl:"autopilot,block"`
	Client    *Client         `hcl:"client,block"`
	Exec      *Exec           `hcl:"exec,block"`
	Fleet     *machines.Fleet `hcl:"fleet,block"`
	Telemetry *Telemetry      `hcl:"telemetry,block"`
	Limits    *Limits         `hcl:"limits,block"`
	TLS       *TLS            `hcl:"tls,block"`
	ACL       *ACL            `hcl:"acl,block"`
	Audit     *Audit          `hcl:"audit,block"`
	DNS       *DNS            `hcl:"dns,block"`
	UI        *pages.UI       `hcl:"ui,block"`
	Vault     *Foreign        `hcl:"vault,block"`
	Consul    *Foreign        `hcl:"consul,block"`
	Plugins   []*plugin.Block `hcl:"plugin,block"`
	Keyrings  []*Keyring      `hcl:"keyring,block"`

	Dev     bool     // set by -dev: everything in one process, nothing kept
	Ignored []string // Nomad's keys that were given and have no effect here
	Rest    hcl.Body `hcl:",remain" json:"-"`
}

// Ports are the ports of the listeners.
type Ports struct {
	HTTP int `hcl:"http,optional"` // of all faces; port
	RPC  int `hcl:"rpc,optional"`  // of nodes and other servers that dial the server; port
	Serf int `hcl:"serf,optional"` // of the servers' gossip, TCP and UDP; who sets it lets others join; port; default 4648
}

// Addresses are the IP addresses that the agent listens on, or tells others to reach it at.
type Addresses struct {
	HTTP string `hcl:"http,optional"` // of the faces
	RPC  string `hcl:"rpc,optional"`  // of nodes and other servers that dial the server
	Serf string `hcl:"serf,optional"` // of the servers' gossip
}

// Foreign configures what Drover has no part in; it may only be switched off.
type Foreign struct {
	Enabled *bool    `hcl:"enabled,optional"` // must be left out, or false; default false
	Any     hcl.Body `hcl:",remain" json:"-"`
}

// Server is the control plane.
type Server struct {
	Enabled *bool `hcl:"enabled,optional"` // run a server in this process; default: true with -dev
	// servers that begin the cluster, the same number on each: 1, 3, 5 or 7; 0 waits to be joined; default 1, or 0 with servers to join
	BootstrapExpect *int   `hcl:"bootstrap_expect,optional"`
	DataDir         string `hcl:"data_dir,optional"` // folder of the log and of snapshots; path; default: server in data_dir
	// first key that gossip is encrypted with, and by which servers know each other without TLS; base64 of 16, 24 or 32 bytes
	Encrypt   string   `hcl:"encrypt,optional"`
	RetryJoin []string `hcl:"retry_join,optional"` // host:port of other servers' gossip, tried until one answers
	StartJoin []string `hcl:"start_join,optional"` // the same as retry_join
	// time between two tries to join; duration; default 30s
	RetryInterval string `hcl:"retry_interval,optional"`
	RetryMax      int    `hcl:"retry_max,optional"` // tries to join until the agent gives up; 0 is no limit; default 0
	// a server that left on purpose joins its former members at its next start; default false
	RejoinAfterLeave *bool `hcl:"rejoin_after_leave,optional"`
	// follow the log and answer reads, but never vote; default false
	NonVoter *bool  `hcl:"non_voting_server,optional"`
	Zone     string `hcl:"redundancy_zone,optional"` // zone of the server, if autopilot keeps one voter in each
	// region whose namespaces, node pools, quotas, rules and access control this one follows, and to which writes of them go;
	// default: the own region
	AuthoritativeRegion string `hcl:"authoritative_region,optional"`
	// how long a new leader waits for nodes before it calls them lost; duration; default 5m
	FailoverHeartbeatTTL string `hcl:"failover_heartbeat_ttl,optional"`
	// how long a request waits for a leader, before it is answered with "No cluster leader"; for a server to take over a runner from
	// one that is gone it waits twice as long; duration; default 5s
	RPCHold string `hcl:"rpc_hold_timeout,optional"`
	// evaluations that are computed at once; default: the number of cores
	NumSchedulers *int `hcl:"num_schedulers,optional"`
	// types of jobs that are computed while this server leads: service, batch, system, sysbatch; others wait; default: all
	EnabledSchedulers []string `hcl:"enabled_schedulers,optional"`
	// factor of the times after which a silent leader is replaced: 1.2 s at most, and three times that with 3; from 1 to 10; default 1
	RaftMultiplier int `hcl:"raft_multiplier,optional"`
	RaftProtocol   int `hcl:"raft_protocol,optional"` // version of raft's protocol; only 3 can be had
	// entries of the log after which a snapshot is written; default 16384, and at 256 MiB of them in any case
	RaftSnapshotThreshold int `hcl:"raft_snapshot_threshold,optional"`
	// time between two looks whether a snapshot is due; duration; default 15s
	RaftSnapshotInterval string `hcl:"raft_snapshot_interval,optional"`
	// entries that stay behind a snapshot for servers that are behind; default 4096, of a lone server 256
	RaftTrailingLogs int `hcl:"raft_trailing_logs,optional"`
	// how late a heartbeat may be before its node is down; duration; default 10s
	HeartbeatGrace string `hcl:"heartbeat_grace,optional"`
	// least time between two heartbeats of a node; duration; default 10s
	MinHeartbeatTTL string `hcl:"min_heartbeat_ttl,optional"`
	JobGC           string `hcl:"job_gc_threshold,optional"` // how long dead jobs are kept; duration; default 4h
	JobGCInterval   string `hcl:"job_gc_interval,optional"`  // how often what is kept no longer is looked for; duration; default 5m
	// how long ended evaluations and their allocations are kept; duration; default 1h
	EvalGC string `hcl:"eval_gc_threshold,optional"`
	// how long those of batch jobs are kept; duration; default: eval_gc_threshold
	BatchEvalGC string `hcl:"batch_eval_gc_threshold,optional"`
	NodeGC      string `hcl:"node_gc_threshold,optional"` // how long nodes that are down are kept; duration; default 24h
	// how long tokens of access control are kept after they have expired, above 0s; duration; default 1h
	TokenGC string `hcl:"acl_token_gc_threshold,optional"`
	// how long ended deployments are kept; duration; default 1h
	DeploymentGC string `hcl:"deployment_gc_threshold,optional"`
	// token that nodes must show, without what may follow @sha256:; default: made at the first start, in data_dir/join-token
	JoinToken     string `hcl:"join_token,optional"`
	JoinTokenFile string `hcl:"join_token_file,optional"` // file that holds join_token; path
	// how much of a job's source is kept beside it: "1M", "512K", "0" for none; default "1M"
	JobMaxSource string `hcl:"job_max_source_size,optional"`
	// allocations that a job may ask for, but for system jobs; 0 is 1000000; default 50000
	JobMaxCount        *int `hcl:"job_max_count,optional"`
	JobMaxPriority     int  `hcl:"job_max_priority,optional"`     // highest priority of jobs, from 100 to 32766; default 100
	JobDefaultPriority int  `hcl:"job_default_priority,optional"` // priority of jobs that say none, below job_max_priority; default 50
	// versions of a job that are kept, beside tagged ones and the newest stable one; default 6
	JobTrackedVersions int `hcl:"job_tracked_versions,optional"`
	// false: /v1/event/stream is refused but with brief=true, by which the page hears of changes; default true
	EventBroker *bool `hcl:"enable_event_broker,optional"`
	// changes of the state whose events are kept for who comes back to the stream; default: as many as 64 MiB hold, which always counts
	EventBufferSize int `hcl:"event_buffer_size,optional"`
	// provider of services that name none: nomad, or consul, whose services are not registered; default nomad
	DefaultServiceProvider string `hcl:"default_service_provider,optional"`
	// URL that identities of tasks name as their issuer, and at which others find the keys that these are checked with; default: none
	OIDCIssuer string `hcl:"oidc_issuer,optional"`
	// how long a root key of the keyring encrypts and signs until another one does; duration; default 720h
	RootKeyRotation string `hcl:"root_key_rotation_threshold,optional"`
	// how long a root key that nothing needs is kept after it was retired; duration; default 1h
	RootKeyGC string `hcl:"root_key_gc_threshold,optional"`
	// time between two looks for such keys; duration; default 10m
	RootKeyGCInterval string `hcl:"root_key_gc_interval,optional"`

	SchedulerConfig *SchedulerConfig `hcl:"default_scheduler_config,block"`
	ServerJoin      *ServerJoin      `hcl:"server_join,block"`
	Snapshots       *Snapshots       `hcl:"snapshots,block"`
	Introduction    *Introduction    `hcl:"client_introduction,block"`

	RejectionTracker *RejectionTracker `hcl:"plan_rejection_tracker,block"`

	Rest hcl.Body `hcl:",remain" json:"-"`
}

// SchedulerConfig is the scheduler's configuration until somebody changes it over the API.
type SchedulerConfig struct {
	Algorithm string `hcl:"scheduler_algorithm,optional"` // how nodes are chosen: binpack or spread; default binpack
	// allow memory_max above memory; default false
	Oversubscribe *bool       `hcl:"memory_oversubscription_enabled,optional"`
	RejectJobs    *bool       `hcl:"reject_job_registration,optional"` // refuse registrations of jobs; default false
	PauseBroker   *bool       `hcl:"pause_eval_broker,optional"`       // process no evaluations; default false
	Preemption    *Preemption `hcl:"preemption_config,block"`
	Rest          hcl.Body    `hcl:",remain" json:"-"`
}

// Preemption says which job types may take the place of allocations of lower priority.
type Preemption struct {
	System   *bool `hcl:"system_scheduler_enabled,optional"`   // system jobs may preempt; default true
	SysBatch *bool `hcl:"sysbatch_scheduler_enabled,optional"` // sysbatch jobs may preempt; default false
	Batch    *bool `hcl:"batch_scheduler_enabled,optional"`    // batch jobs may preempt; default false
	Service  *bool `hcl:"service_scheduler_enabled,optional"`  // service jobs may preempt; default false
}

// ServerJoin names servers: those that a server joins by gossip, or that a node dials as it does client.servers.
type ServerJoin struct {
	RetryJoin     []string `hcl:"retry_join,optional"`     // host:port of their gossip, or of their rpc for a node
	StartJoin     []string `hcl:"start_join,optional"`     // the same as retry_join
	RetryMax      int      `hcl:"retry_max,optional"`      // tries of a server until it gives up; a node dials for ever; default 0, no limit
	RetryInterval string   `hcl:"retry_interval,optional"` // time between two tries of a server; duration; default 30s
}

// Client is the node agent.
type Client struct {
	Enabled *bool `hcl:"enabled,optional"` // run a node in this process; default: true with -dev
	// rpc ports of servers, of which it learns of the others, host:port; default: the server in this process
	Servers   []string          `hcl:"servers,optional"`
	NodeClass string            `hcl:"node_class,optional"` // class of the node, which jobs can constrain
	NodePool  string            `hcl:"node_pool,optional"`  // pool of nodes that it joins
	Meta      map[string]string // from meta { key = "value" }
	Options   map[string]string // from options { key = "value" }
	ChrootEnv map[string]string // from chroot_env { "/path" = "/inside" }
	MetaBlock *Free             `hcl:"meta,block"` // Metadata of the node, for constraints and templates.
	// Nomad's older options: driver.NAME.enable switches a driver, driver.denylist and driver.allowlist name those that the node lacks or
	// alone has, fingerprint.denylist and fingerprint.allowlist likewise the clouds that are asked. The log names others.
	OptionsBlock *Free `hcl:"options,block"`
	// Parts of the machine that tasks of exec and java see, read-only, and where: "/opt/app" = "/app"; default: Nomad's list.
	ChrootBlock *Free `hcl:"chroot_env,block"`
	// token of the server, whose @sha256:… names the authority that the node believes; default: what a server of the same user on this
	// machine left for it
	JoinToken     string `hcl:"join_token,optional"`
	JoinTokenFile string `hcl:"join_token_file,optional"` // file that holds join_token; path
	// token with which it joins in place of join_token, from "drover node intro create"; default: what is in
	// data_dir/client/intro_token.jwt
	IntroToken    string `hcl:"intro_token,optional"`
	CPUTotal      int    `hcl:"cpu_total_compute,optional"` // CPU that the node offers; MHz; default: measured
	MemoryTotalMB int    `hcl:"memory_total_mb,optional"`   // memory that the node offers; MB; default: measured
	DiskTotalMB   int    `hcl:"disk_total_mb,optional"`     // disk that the node offers; MB; default: measured
	NodeMaxAllocs int    `hcl:"node_max_allocs,optional"`   // allocations at most; 0 is no limit; default 0
	// upper bound of a task's kill_timeout; duration; default 30s
	MaxKillTimeout string `hcl:"max_kill_timeout,optional"`
	MinDynamicPort int    `hcl:"min_dynamic_port,optional"` // lowest port that is given out; port; default 20000
	MaxDynamicPort int    `hcl:"max_dynamic_port,optional"` // highest port that is given out; port; default 32000
	// how often the node looks for ended allocations to remove; duration; default 1m
	GCInterval string `hcl:"gc_interval,optional"`
	// use of the disk above which ended allocations are removed; percent; default 80
	GCDiskUsage float64 `hcl:"gc_disk_usage_threshold,optional"`
	// use of inodes above which ended allocations are removed; percent; default 70
	GCInodeUsage float64 `hcl:"gc_inode_usage_threshold,optional"`
	GCMaxAllocs  int     `hcl:"gc_max_allocs,optional"` // ended allocations that are kept; default 50
	// how long logs of ended tasks are kept at least, unless a person asks; duration; default 0s
	GCMinAge string `hcl:"gc_min_age,optional"`
	// how long ended allocations are kept at most; duration; default 24h
	GCMaxAge     string `hcl:"gc_max_age,optional"`
	NoRemoteExec *bool  `hcl:"disable_remote_exec,optional"` // refuse exec in allocations; default false
	// folder of the allocations' folders; those of before another setting stay where they are until they end; path; default: alloc in data_dir
	AllocDir string `hcl:"alloc_dir,optional"`
	// folder of the node's identity and of what it knows of its tasks; path; default: client in data_dir
	StateDir string `hcl:"state_dir,optional"`
	// folder in which those of host volumes are made that are asked for; path; default host_volumes in data_dir
	HostVolumesDir string `hcl:"host_volumes_dir,optional"`
	// folders that may be registered as volumes, with all that lies in them; "/" is any but the agent's own; default none
	HostVolumePaths []string `hcl:"host_volume_paths,optional"`
	// folder of programs that make host volumes, by Nomad's protocol; path; default host_volume_plugins in data_dir
	HostVolumePluginDir string `hcl:"host_volume_plugin_dir,optional"`
	// folders of CNI's plugins, with colons between; path; default /opt/cni/bin
	CNIPath string `hcl:"cni_path,optional"`
	// folder with the networks that groups name as cni/NAME; path; default /opt/cni/config
	CNIConfigDir string `hcl:"cni_config_dir,optional"`
	// interface whose first address is the node's, for ports that name no host network; default: the first interface that is up and
	// has one
	NetworkInterface string `hcl:"network_interface,optional"`
	// family of the node's address where there are several: ipv4 or ipv6; default ipv4
	AddressFamily string `hcl:"preferred_address_family,optional"`
	// cores that tasks can reserve, such as "0-3,6"; default: all, if the machine has cpusets
	ReservableCores string `hcl:"reservable_cores,optional"`
	BridgeName      string `hcl:"bridge_network_name,optional"` // device of the bridge of groups and runners; default drover0
	// IPv4 network of the bridge, of 16 addresses at least; its first address is the machine's; CIDR; default 172.27.64.0/20
	BridgeSubnet string `hcl:"bridge_network_subnet,optional"`
	// IPv6 network of the bridge, as large as the IPv4 one at least; tasks of jobs have an address of it, too, and its first address is the
	// machine's; needs nft; CIDR; default none
	BridgeSubnet6 string `hcl:"bridge_network_subnet_ipv6,optional"`
	// of no effect: groups reach published ports of their node, also their own, either way; default false
	BridgeHairpin *bool `hcl:"bridge_network_hairpin_mode,optional"`
	// control group that all of the agent's groups are below; default "drover"
	CgroupParent string `hcl:"cgroup_parent,optional"`

	Reserved    *Reserved     `hcl:"reserved,block"`
	Egress      *Egress       `hcl:"egress,block"`
	Artifact    *Artifact     `hcl:"artifact,block"`
	Template    *Template     `hcl:"template,block"`
	Machine     *Machine      `hcl:"machine,block"`
	Drain       *DrainOnEnd   `hcl:"drain_on_shutdown,block"`
	HostVolumes []*HostVolume `hcl:"host_volume,block"`

	HostNetworks []*HostNetwork        `hcl:"host_network,block"`
	Fingerprints []*clouds.Fingerprint `hcl:"fingerprint,block"`
	ServerJoin   *ServerJoin           `hcl:"server_join,block"`
	Rest         hcl.Body              `hcl:",remain" json:"-"`
}

// Artifact bounds what the node fetches for tasks.
type Artifact struct {
	// special networks and addresses that artifacts may come from: loopback, link-local, metadata, the machine's own;
	// CIDR; default: the Internet and private networks
	Allow []string `hcl:"allow,optional"`
	// how long one download by http may take; "0" is no limit; default 30m
	HTTPReadTimeout string `hcl:"http_read_timeout,optional"`
	GitTimeout      string `hcl:"git_timeout,optional"` // how long one repository may take; "0" is no limit; default 30m
	S3Timeout       string `hcl:"s3_timeout,optional"`  // how long one object or folder of S3 may take; "0" is no limit; default 30m
	GCSTimeout      string `hcl:"gcs_timeout,optional"` // how long one object or folder of GCS may take; "0" is no limit; default 30m
	// buckets of Amazon's and Google's are asked with the node's own rights, which any job then has for artifacts; default false
	CloudCredentials *bool `hcl:"cloud_credentials,optional"`
	// those that are asked so, by their names, with * for any characters: ["team-a-*"]; default: all
	CloudBuckets []string `hcl:"cloud_buckets,optional"`
	// what git may read beside the machine's system: PATH, or "d:rx:/opt/git" as with Nomad; default none
	ExtraPaths []string `hcl:"filesystem_isolation_extra_paths,optional"`
	// most of one artifact as it comes, of whatever kind: 100MB, 2GiB; 0 is no limit but the disk's room, which always counts; default 10GiB
	HTTPMaxSize string `hcl:"http_max_size,optional"`
	// most of what an archive unpacks to; 0 is no limit but the disk's room; default 10GiB
	UnpackedSize string `hcl:"decompression_size_limit,optional"`
	// most files, folders and links of an archive, a repository or a folder of a bucket; 0 is no limit; default 200000
	UnpackedFiles *int     `hcl:"decompression_file_count_limit,optional"`
	Rest          hcl.Body `hcl:",remain" json:"-"`
}

// Free is a block with keys of the user's choice.
type Free struct {
	Keys hcl.Attributes `hcl:",remain"`
}

// Reserved is kept from allocations.
type Reserved struct {
	CPU      int `hcl:"cpu,optional"`    // kept from allocations; MHz; default 0
	MemoryMB int `hcl:"memory,optional"` // kept from allocations; MB; default 0
	DiskMB   int `hcl:"disk,optional"`   // kept from allocations; MB; default 0
	// cores that no task reserves, such as "0,2-3": their MHz are kept from allocations, beside cpu; tasks that reserve no cores are not
	// kept off them
	Cores         string   `hcl:"cores,optional"`
	ReservedPorts string   `hcl:"reserved_ports,optional"` // ports that are never given out: "22,80,8500-8600"
	Rest          hcl.Body `hcl:",remain" json:"-"`
}

// HostVolume is a folder that the node offers.
type HostVolume struct {
	Name     string `hcl:"name,label"`
	Path     string `hcl:"path"`               // folder of the machine
	ReadOnly *bool  `hcl:"read_only,optional"` // mount it read-only; default false
}

// Default returns what holds when nobody says otherwise.
func Default() *Agent {
	return &Agent{
		Region: "global", Datacenter: "dc1", BindAddr: "127.0.0.1", LogLevel: "info",
		Ports:     &Ports{HTTP: 4646, RPC: 4647},
		Server:    &Server{Enabled: new(false)},
		Client:    &Client{Enabled: new(false), NodePool: "default"},
		Exec:      &Exec{QueueLength: 1000, ClaimWait: "15s", NetworkMode: "bridge"},
		Telemetry: &Telemetry{CollectionInterval: "1s"},
		Autopilot: &Autopilot{}, // present, as in the configuration that Nomad shows
	}
}

// DevMode returns what -dev changes: both planes, raw_exec and the scriptable driver allowed, nothing kept. As raw_exec lets
// jobs do all that the agent may, nothing is gained by refusing them the machine's network, its paths and docker's networks.
func DevMode() *Agent {
	return &Agent{
		Dev: true, Server: &Server{Enabled: new(true)}, Client: &Client{Enabled: new(true)},
		Plugins: []*plugin.Block{
			{Name: "raw_exec", Config: &plugin.Config{Enabled: new(true)}},
			{Name: "mock_driver", Config: &plugin.Config{Enabled: new(true)}}, // as Nomad's development builds
			{Name: "sandbox", Config: &plugin.Config{AllowHostNetwork: new(true)}},
			{Name: "exec", Config: &plugin.Config{AllowHostNetwork: new(true)}},
			{Name: "java", Config: &plugin.Config{AllowHostNetwork: new(true)}},
			{Name: "qemu", Config: &plugin.Config{AllowHostNetwork: new(true)}},
			{Name: "docker", Config: &plugin.Config{
				AllowHostNetwork: new(true), AllowNetworks: []string{"*"}, Volumes: &plugin.Volumes{Enabled: new(true)},
			}},
			{Name: "podman", Config: &plugin.Config{ // where its socket is configured
				AllowHostNetwork: new(true), AllowNetworks: []string{"*"}, Volumes: &plugin.Volumes{Enabled: new(true)},
			}},
		},
	}
}

// Duration parses a duration of the configuration, which Validate has checked; empty is def.
func Duration(s string, def time.Duration) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		return def
	}
	return d
}

// HTTPAddress is where the faces listen.
func (a *Agent) HTTPAddress() string { return a.address("http", a.Ports.HTTP) }

// AdvertisedHTTP is what others are told of where the faces are, given where they are served. It is advertise.http, with that
// port if it names none; else the address itself, unless it stands for all of the machine's: then host.
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
