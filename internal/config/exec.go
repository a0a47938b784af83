package config

// Exec is the execution service.
type Exec struct {
	Enabled *bool `hcl:"enabled,optional"` // serve executions; default: true with the server
	// base of the websocketUrl that clients behind a proxy are told; URL
	PublicURL string `hcl:"public_url,optional"`
	// share of a pool below which Poseidon's health check fails; 0 to 1; default 0, which is never
	AlertThreshold float64 `hcl:"prewarming_pool_threshold,optional"`
	QueueLength    int     `hcl:"claim_queue_length,optional"` // claims that may wait for a runner
	// how long a claim over Poseidon's face waits for a runner; duration
	ClaimWait   string `hcl:"claim_wait,optional"`
	NetworkMode string `hcl:"network_mode,optional"` // network of environments with network access: bridge or host
	// driver of environments that Poseidon's face makes: sandbox, docker, podman or raw_exec; default sandbox
	PoseidonDriver string        `hcl:"poseidon_driver,optional"`
	WebhookAllow   []string      `hcl:"webhook_allow,optional"` // networks beside public ones that webhooks may reach; CIDR
	Environments   []*EnvSetting `hcl:"environment,block"`      // made at start if they are not there
	Nomad          *NomadCluster `hcl:"nomad,block"`            // keep runners on this cluster instead of here
}

// NomadCluster is an existing Nomad cluster that runners are kept on.
type NomadCluster struct {
	Address   string `hcl:"address"`            // of the cluster's HTTP API; URL
	Token     string `hcl:"token,optional"`     // ACL token
	Region    string `hcl:"region,optional"`    // of the cluster; default: the agent's that answers
	Namespace string `hcl:"namespace,optional"` // that runners' jobs are in; default "default"
	CAFile    string `hcl:"ca_file,optional"`   // authority of the cluster's certificate; path
	CertFile  string `hcl:"cert_file,optional"` // client certificate; path
	KeyFile   string `hcl:"key_file,optional"`  // its key; path
	Driver    string `hcl:"driver,optional"`    // of environments that name none; default docker
}

// EnvSetting is an environment given in the configuration.
type EnvSetting struct {
	ID       string `hcl:"id,label"`
	Image    string `hcl:"image"`              // host, an OCI reference, a layout or an archive
	Driver   string `hcl:"driver,optional"`    // sandbox, docker, podman or raw_exec; default sandbox
	PoolSize int    `hcl:"pool_size,optional"` // warm runners to keep; default 0
	CPU      int    `hcl:"cpu,optional"`       // MHz; default: the service's
	MemoryMB int    `hcl:"memory,optional"`    // memory of a runner; MB; default: the service's
	Network  *bool  `hcl:"network,optional"`   // network access; default false
}
