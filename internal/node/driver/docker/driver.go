package docker

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/diskuse"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker/images"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/optional"
)

// Name of the driver in jobs.
const Name = "docker"

// Config of the driver.
type Config struct {
	Podman   bool            // the endpoint is podman's, and so are the driver's name and the keys of tasks
	Endpoint string          // of dockerd; "" = DOCKER_HOST and its kin, else unix:///var/run/docker.sock
	Owner    string          // marks our containers: one agent's do not concern another's; the agent's data folder
	Binary   string          // drover-init, from supervisor.Binary
	Cgroups  *cgroup.Groups  // nil: executions have no groups of their own
	Bridge   *bridge.Network // for warm runners; nil: they are on docker's own
	Clock    clock.Clock
	Log      *slog.Logger
	CoreMHz  int // for cpu_hard_limit and usage in MHz; 0: neither

	AllowPrivileged bool
	// AllowVolumes lets jobs mount any path of the machine; else only paths in their allocation.
	AllowVolumes bool
	// AllowCaps are all capabilities that containers may have ("chown", "net_admin"; "all"); empty: docker's default.
	AllowCaps []string
	// AllowRuntimes are patterns of the runtimes that jobs may name; empty: those of which we know that they hold.
	AllowRuntimes []string
	// AllowHostNetwork lets jobs have the machine's network.
	AllowHostNetwork bool
	// What else needs leave, each as patterns: paths of devices, names of docker networks, of volume drivers with their options, of
	// kernel settings, and of limits. Kernel settings that are a container's own need none.
	AllowDevices, AllowNetworks, AllowVolumeDrivers, AllowSysctls, AllowUlimits []string
	// Labels are patterns of what containers are labelled with beside the task: "job_id", "namespace", "job*".
	Labels []string
	// Pids is the pids_limit of tasks that have none, and the highest that others may have; 0: no limit.
	Pids int64
	// SELinux is the label that volumes get ("z"); "" = none.
	SELinux string
	// AuthConfig is a docker config.json with accounts of registries; AuthHelper, X, names a docker-credential-X.
	AuthConfig, AuthHelper string
	// Cert, Key and CA are files for an endpoint by tcp.
	Cert, Key, CA string
	// ImageDelay is how long an image that we pulled stays after its last task; default 3 minutes, negative = forever.
	ImageDelay time.Duration
	// PullQuiet ends a pull that makes no progress; default 2 minutes.
	PullQuiet time.Duration
	// DaemonWait is how long a start waits for a daemon that is away, as while it restarts; default 30 s.
	DaemonWait time.Duration
	// RemoveWait is how long a removal waits for a daemon that hangs, before the container is killed without it; default
	// 20 s.
	RemoveWait time.Duration
}

// Driver starts containers. Its methods may be called at once.
type Driver struct {
	cfg    Config
	docker *client.Client
	images *images.Cache
	daemon daemonInfo
	disks  diskuse.Watch

	restored atomic.Bool // what no task knows is nobody's; see Restored

	warnLayer sync.Once

	mu    sync.Mutex
	known map[string]bool // ids, and names until there is an id, of this agent's containers; guarded by mu
}

var (
	_ driver.Devicer  = (*Driver)(nil)
	_ driver.Restorer = (*Driver)(nil)
)

// What Config says of them is why they exist; none of them comes from docker.
const (
	defaultImageDelay = 3 * time.Minute
	defaultPullQuiet  = 2 * time.Minute
	defaultDaemonWait = 30 * time.Second
	defaultRemoveWait = 20 * time.Second
)

// New returns the driver. No I/O: whether there is a daemon is in Fingerprint and in Start's errors. Errors: an endpoint
// that cannot be one.
func New(cfg Config) (*Driver, error) {
	optional.Default(&cfg.ImageDelay, defaultImageDelay)
	optional.Default(&cfg.PullQuiet, defaultPullQuiet)
	optional.Default(&cfg.DaemonWait, defaultDaemonWait)
	optional.Default(&cfg.RemoveWait, defaultRemoveWait)
	options := []client.Opt{client.FromEnv}
	if cfg.Endpoint != "" {
		options = []client.Opt{client.WithHost(cfg.Endpoint)}
	}
	if cfg.Cert != "" || cfg.CA != "" {
		options = append(options, client.WithTLSClientConfig(cfg.CA, cfg.Cert, cfg.Key))
	}
	c, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("docker endpoint %q: %w", cfg.Endpoint, err)
	}
	d := &Driver{cfg: cfg, docker: c, disks: diskuse.Watch{Clock: cfg.Clock}, known: map[string]bool{}}
	d.daemon.d = d
	d.images = images.New(images.Config{
		Docker: c, Name: d.Name(), Owner: cfg.Owner, Clock: cfg.Clock, Log: cfg.Log, AuthConfig: cfg.AuthConfig, AuthHelper: cfg.AuthHelper,
		Delay: cfg.ImageDelay, PullQuiet: cfg.PullQuiet,
	})
	return d, nil
}

// Name returns "docker", or "podman".
func (d *Driver) Name() string {
	if d.cfg.Podman {
		return Podman
	}
	return Name
}

// Close lets go of the connections to the daemon. Containers live on.
func (d *Driver) Close() error {
	d.images.Close()
	return d.docker.Close()
}

// remember makes a container, by its id or name, one that Sweep spares.
func (d *Driver) remember(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[id] = true
}

// forget lets Sweep take the container, if it is still there.
func (d *Driver) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, id)
}
