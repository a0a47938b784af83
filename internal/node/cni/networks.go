package cni

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/utils"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/program"
)

// The folders that Nomad has, where the configuration names none.
const (
	DefaultPath      = "/opt/cni/bin"
	DefaultConfigDir = "/opt/cni/config"
)

// Config of Networks.
type Config struct {
	Path      []string // folders of plugins; default DefaultPath
	ConfigDir string   // of the networks' files; default DefaultConfigDir
	CacheDir  string   // where the results of plugins are kept for their ends; made when needed
	Clock     clock.Clock
	Log       *slog.Logger
}

// Networks are those of a machine. Its methods may be called at once.
type Networks struct {
	cfg     Config
	plugins *libcni.CNIConfig
	run     runner

	mu     sync.Mutex
	looked string // signature of what was found; guarded by mu
	found  Found  // guarded by mu
}

// New returns the machine's networks. No I/O.
func New(cfg Config) *Networks {
	cfg.ConfigDir = cmp.Or(cfg.ConfigDir, DefaultConfigDir)
	if len(cfg.Path) == 0 {
		cfg.Path = []string{DefaultPath}
	}
	n := &Networks{cfg: cfg}
	n.plugins = libcni.NewCNIConfigWithCacheDir(cfg.Path, cfg.CacheDir, n.run)
	return n
}

// configured is one that was found.
type configured struct {
	list *libcni.NetworkConfigList
	file string
	why  error // it cannot be used; nil: it can
}

// The bounds of what is read.
const (
	maxFiles = 256
	maxFile  = 1 << 20 // bytes
)

// all reads the networks by their names. Of two files with one name the first in order counts. A machine without the folder has none.
func (n *Networks) all() (map[string]configured, error) {
	files, err := libcni.ConfFiles(n.cfg.ConfigDir, []string{".conf", ".conflist", ".json"})
	if err != nil || len(files) == 0 {
		return nil, err
	}
	if _, err := program.Trusted(n.cfg.ConfigDir); err != nil {
		return nil, err
	}
	slices.Sort(files)
	out := map[string]configured{}
	for _, file := range files[:min(len(files), maxFiles)] {
		list, err := n.read(file)
		if list == nil { // it has no name
			n.cfg.Log.Warn("a file of a CNI network cannot be read", "file", file, "error", err)
			continue
		}
		if first, taken := out[list.Name]; taken {
			n.cfg.Log.Warn("two files have one CNI network, the first counts", "network", list.Name, "first", first.file, "second", file)
			continue
		}
		out[list.Name] = configured{list: list, file: file, why: err}
	}
	return out, nil
}

// read reads a file of a network; nil if it is nobody's. An error beside a network says why it cannot be used.
func (n *Networks) read(file string) (*libcni.NetworkConfigList, error) {
	_, trust := program.Trusted(file)
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("it is no file of at most %d bytes", maxFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := parse(data)
	if err != nil {
		return nil, err
	}
	if trust != nil {
		return list, trust
	}
	return list, n.usable(list)
}

// parse reads a network of one plugin, or of several in order.
func parse(data []byte) (*libcni.NetworkConfigList, error) {
	var kind struct{ Plugins json.RawMessage }
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, err
	}
	list, err := (*libcni.NetworkConfigList)(nil), error(nil)
	if kind.Plugins != nil {
		list, err = libcni.NetworkConfFromBytes(data)
	} else {
		var one *libcni.PluginConfig
		if one, err = libcni.NetworkPluginConfFromBytes(data); err == nil {
			list, err = libcni.ConfListFromConf(one) //nolint:staticcheck // deprecated with the format, which Nomad's users still have
		}
	}
	if err != nil {
		return nil, err
	}
	if fault := utils.ValidateNetworkName(list.Name); fault != nil {
		return nil, fmt.Errorf("%s: %q", fault.Msg, list.Name)
	}
	return list, nil
}

// usable says why a network's plugins cannot be run.
func (n *Networks) usable(list *libcni.NetworkConfigList) error {
	if list.CNIVersion != "" {
		if newer, err := version.GreaterThan(list.CNIVersion, version.Current()); err != nil || newer {
			return fmt.Errorf("cniVersion %q is not known, the newest that is is %s", list.CNIVersion, version.Current())
		}
	}
	if len(list.Plugins) == 0 {
		return fmt.Errorf("it has no plugins")
	}
	for _, p := range list.Plugins {
		types := []string{p.Network.Type}
		if ipam := p.Network.IPAM.Type; ipam != "" {
			types = append(types, ipam)
		}
		for _, kind := range types {
			path, err := n.run.FindInPath(kind, n.cfg.Path)
			if err != nil {
				return fmt.Errorf("plugin %q is not in %s", kind, strings.Join(n.cfg.Path, ":"))
			}
			if _, err := program.Trusted(path); err != nil {
				return fmt.Errorf("plugin %q: %w", kind, err)
			}
		}
	}
	return nil
}

// mapsPorts reports whether a plugin of the network leads ports of the machine to its guests.
func mapsPorts(list *libcni.NetworkConfigList) bool {
	return slices.ContainsFunc(list.Plugins, func(p *libcni.PluginConfig) bool { return p.Network.Capabilities[capabilityPorts] })
}

// find returns the network that a job asks for. Errors: Unavailable, with the reason.
func (n *Networks) find(name string) (*libcni.NetworkConfigList, error) {
	all, err := n.all()
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "CNI network %q: %w", name, err)
	}
	found, ok := all[name]
	switch {
	case !ok:
		return nil, drover.Errorf(drover.Unavailable, "there is no CNI network %q in %s", name, n.cfg.ConfigDir)
	case found.why != nil:
		return nil, drover.Errorf(drover.Unavailable, "CNI network %q of %s: %w", name, filepath.Base(found.file), found.why)
	}
	return found.list, nil
}

// compacted is JSON without spaces, for the record of a namespace.
func compacted(data []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
