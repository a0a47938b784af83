package sandbox

import (
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/diskuse"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Name of the driver in jobs.
const Name = "sandbox"

// Config of the driver.
type Config struct {
	Dir     string         // the driver's own folder; made if missing
	Binary  string         // drover-init, from supervisor.Binary
	Images  *image.Store   //
	Cgroups *cgroup.Groups // nil: this machine has none that we can use
	Clock   clock.Clock
	Log     *slog.Logger
	CoreMHz int // for usage in MHz; 0: it is not told

	// AllowHostMounts lets jobs mount any path of the machine; else only paths in their allocation.
	AllowHostMounts bool
	// AllowHostNetwork lets jobs share the machine's network.
	AllowHostNetwork bool
	// AllowCaps are capabilities that jobs may add, by name ("net_raw"); nil means none.
	AllowCaps []string
	// Bridge is what sandboxes with network_mode bridge are on; nil: one with bridge's defaults, which is the driver's own.
	Bridge *bridge.Network
}

// Driver starts sandboxes. Its methods may be called at once.
type Driver struct {
	cfg      Config
	rootless bool
	seccomp  seccompPrograms
	ids      idRanges
	devices  devices
	proc     procFiles
	bridge   *bridge.Network
	disks    diskuse.Watch
	shelf    *supervisor.Shelf
	outer    bool        // see remembers
	bare     func() bool // see canBare
	// plainMounts: the kernel or file system refused idmapped mounts, so owners show as nobody.
	plainMounts atomic.Bool
}

var _ driver.Devicer = (*Driver)(nil)

// New returns the driver. No I/O: what the machine lacks is in Fingerprint and in Start's errors.
func New(cfg Config) *Driver {
	if cfg.Bridge == nil {
		cfg.Bridge = bridge.New(bridge.Config{Egress: egress.Default(), Clock: cfg.Clock, Log: cfg.Log})
	}
	rootless := geteuid() != 0
	return &Driver{
		bare: sync.OnceValue(func() bool { return !rootless && canBare() }),
		cfg:  cfg, bridge: cfg.Bridge, rootless: rootless, outer: !rootless && !remembers(), ids: idRanges{used: map[uint32]bool{}},
		disks: diskuse.Watch{Clock: cfg.Clock}, shelf: supervisor.NewShelf(filepath.Join(cfg.Dir, "supervisors"), cfg.Log),
	}
}

// Name returns "sandbox".
func (d *Driver) Name() string { return Name }
