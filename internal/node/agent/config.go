package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/fingerprint"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskapi"
	"github.com/drover-project/drover/internal/node/taskrunner"
	"github.com/drover-project/drover/usage"
)

// Config is what a node is told about itself. The zero value of every field but DataDir is usable.
type Config struct {
	// DataDir holds alloc/, supervisor/ and client/ (identity, local state). Required, absolute.
	DataDir string
	// AllocDir is where allocations have their folders. Absolute; default: alloc in DataDir.
	AllocDir string
	// StateDir holds the identity and the local state. Absolute; default: client in DataDir.
	StateDir string
	// InMemory keeps the local state out of the disk (dev mode): a restarted agent remembers no task.
	InMemory bool
	// SecretsInMemory keeps tasks' secrets out of the disk, where the machine has what that takes.
	SecretsInMemory bool
	// ShieldFolders puts the allocations' folders on a mount of their own: see allocdir.Root.Shield.
	ShieldFolders bool
	// Cores are those that can be lent to one task alone, and those that are kept from allocations. Default: all can be lent.
	Cores fingerprint.Cores
	// StopOnExit stops and destroys everything when Run ends. Else tasks outlive the agent, and are found again.
	StopOnExit bool
	// ExitTimeout bounds the stopping of StopOnExit. Default 15s.
	ExitTimeout time.Duration

	// NodeID overrides the persisted identity; "" makes one at the first start.
	NodeID string
	// Name is the node's name. Default: the host's.
	Name       string
	Region     string // default "global"
	Datacenter string // default "dc1"
	NodePool   string // default "default"
	NodeClass  string
	Meta       map[string]string
	HTTPAddr   string // where this node's HTTP API can be reached, as shown by the API
	Version    string // shown as nomad.version: the API that we speak
	// DroverVersion is shown as drover.version.
	DroverVersion string

	// CPUMHz and MemoryMB override what the fingerprint found, in total; 0 = found.
	CPUMHz   int64
	MemoryMB int64
	DiskMB   int64
	// Reserved is kept from allocations.
	Reserved      drover.Capacity
	ReservedPorts string // "22,80,8500-8600"
	// MinDynamicPort and MaxDynamicPort bound the ports that are given to those who ask for any. Default 20000, 32000.
	MinDynamicPort int
	MaxDynamicPort int
	MaxAllocs      int // shown as NodeMaxAllocs; 0 = no bound
	HostVolumes    map[string]*drover.HostVolumeInfo
	HostNetworks   map[string]*drover.HostNetworkInfo
	// Interface is that of the node's address. Default: the first with one. Family is "ipv6" where that is preferred to IPv4.
	Interface, Family string
	// VolumesDir is where the folders of host volumes are made that control asks for. Default: host_volumes in DataDir.
	VolumesDir string
	// VolumePaths are folders that may be registered as volumes, with all that lies in them. Absolute; none by default.
	VolumePaths []string
	// VolumePluginDir is where programs are that make host volumes; absolute; "" = there are none.
	VolumePluginDir string

	// MaxKillTimeout bounds a task's kill_timeout. Default 30s.
	MaxKillTimeout time.Duration
	// ParallelStarts bounds the driver starts under way. Default 4 a core, at least 8.
	ParallelStarts int

	GC GCConfig

	// PublishAllocMetrics samples every running task each CollectionInterval for Deps.Metrics. Off: nothing is
	// sampled unless somebody asks.
	PublishAllocMetrics bool
	CollectionInterval  time.Duration // default 1s

	Artifacts Artifacts
	// Templates says what templates may call, and how long their changes wait.
	Templates hook.TemplateRules
}

// GCConfig says which folders of ended allocations go, the longest ended first.
type GCConfig struct {
	MaxAllocs    int           // folders of ended allocations kept. Default 50
	MaxAge       time.Duration // an ended allocation's folder goes after this. Default 24h; < 0 = never
	MinAge       time.Duration // and is kept at least this long, unless a person asks. Default 0
	DiskPercent  float64       // folders go while the disk is fuller than this. Default 80
	InodePercent float64       // same for inodes. Default 70
	Interval     time.Duration // default 1m
}

// Deps is what an agent needs of the process around it.
type Deps struct {
	Controller exchange.Controller
	Drivers    []driver.Driver
	Clock      clock.Clock
	IDs        id.Source
	Log        *slog.Logger
	// State remembers tasks over an agent restart. Default: bbolt in DataDir, or memory with Config.InMemory. The
	// caller who gives one closes it.
	State localstate.Store
	// Host samples the machine. nil: NodeStats answers NotImplemented.
	Host HostMeter
	// Devices are those of the machine that jobs may ask for; nil: there are none.
	Devices Devices
	// Clouds asks the cloud that the machine is in; nil: nobody does.
	Clouds Clouds
	// Machine says what it has for tasks and lacks; nil: nobody looks.
	Machine Machine
	// Networks has the network namespaces that groups share; nil: there are none. It was restored.
	Networks Networks
	// Evaluator renders templates, where that can harm nobody. nil: tasks that have templates fail.
	Evaluator hook.Evaluator
	// TaskAPI offers tasks the agent's API. nil: they have none.
	TaskAPI *taskapi.API
	// Groups removes control groups that an earlier agent left; nil: there are none.
	Groups GroupSweeper
	// Samples receives what PublishAllocMetrics collects; it must not block. nil drops them.
	Samples func(alloc *drover.Allocation, task string, usage *usage.TaskResourceUsage)
	// Terminated is told of every task's exit, for counters; it must not block. nil drops it.
	Terminated func(alloc *drover.Allocation, task string, exit driver.Exit)
}

// Networks has the network namespaces that groups share; node/groupnet is one.
type Networks interface {
	taskrunner.Networks
	// Sweep gives up those of allocations that keep does not want.
	Sweep(ctx context.Context, keep func(allocID string) bool) error
	// Look finds the networks of CNI, which must not be changed.
	Look(ctx context.Context) cni.Found
}

// Devices finds the devices of a machine; node/device does.
type Devices interface {
	hook.Devices
	// Look returns the groups of equal devices as they are now, which must not be changed.
	Look(ctx context.Context) []*drover.NodeDeviceResource
	// Period is the time between two looks.
	Period() time.Duration
	// Stats samples the devices that keep wants.
	Stats(ctx context.Context, keep func(id string) bool) []*usage.DeviceGroupStats
}

// HostMeter samples a machine; node/stats has one.
type HostMeter interface {
	Host(allocDir string) (*usage.HostStats, error)
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, drover.Errorf(drover.Invalid, "data_dir: is required"))
	}
	if c.NodeID != "" && !id.Valid(c.NodeID) {
		errs = append(errs, drover.Errorf(drover.Invalid, "node id %q: is not a UUID", c.NodeID))
	}
	for name, n := range map[string]int64{"cpu_total_compute": c.CPUMHz, "memory_total_mb": c.MemoryMB, "disk_total_mb": c.DiskMB} {
		if n < 0 {
			errs = append(errs, drover.Errorf(drover.Invalid, "client.%s: must not be negative", name))
		}
	}
	return errors.Join(errs...)
}

// withDefaults returns the configuration with the documented defaults in place of zero values.
func (c Config) withDefaults() Config {
	fill(&c.AllocDir, filepath.Join(c.DataDir, "alloc"))
	fill(&c.StateDir, filepath.Join(c.DataDir, "client"))
	fill(&c.Region, drover.DefaultRegion)
	fill(&c.Datacenter, drover.DefaultDatacenter)
	fill(&c.NodePool, drover.DefaultNodePool)
	fill(&c.ExitTimeout, 15*time.Second)
	fill(&c.MaxKillTimeout, 30*time.Second)
	fill(&c.ParallelStarts, max(8, 4*runtime.NumCPU()))
	fill(&c.CollectionInterval, time.Second)
	c.Artifacts.fill()
	fill(&c.GC.MaxAllocs, 50)
	fill(&c.GC.MaxAge, 24*time.Hour)
	fill(&c.GC.DiskPercent, 80)
	fill(&c.GC.InodePercent, 70)
	fill(&c.GC.Interval, time.Minute)
	return c
}

// fill sets a field that has the zero value of its type.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
