package agent

import (
	"maps"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/volumes"
)

// openVolumes reads which volumes the node has that control asked for.
func (a *Agent) openVolumes() *volumes.Manager {
	cfg := volumes.Config{
		Dir: a.cfg.VolumesDir, Own: a.cfg.DataDir, Allowed: a.cfg.VolumePaths, PluginDir: a.cfg.VolumePluginDir,
		NodeID: a.identity.ID, NodePool: a.cfg.NodePool, Clock: a.clock, Log: a.log,
	}
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(a.cfg.DataDir, "host_volumes")
	}
	if !a.cfg.InMemory {
		cfg.File = filepath.Join(a.cfg.DataDir, "client", "host_volumes.json")
	}
	return volumes.New(cfg)
}

// hostVolumes are those of the configuration and those that control asked for. Of two with the same name the configuration's counts.
func (a *Agent) hostVolumes() map[string]*drover.HostVolumeInfo {
	all := a.volumes.Offered()
	maps.Copy(all, a.cfg.HostVolumes)
	return all
}

// offerVolumes has control and tasks see the node's volumes as they are now, and what can make some.
func (a *Agent) offerVolumes() {
	a.amend(func(n *drover.Node) {
		n.HostVolumes, n.Attributes = a.hostVolumes(), maps.Clone(n.Attributes)
		maps.DeleteFunc(n.Attributes, func(name, _ string) bool { return strings.HasPrefix(name, volumes.AttributePrefix) })
		a.describePlugins(n)
	})
	a.again.Send()
}

// describePlugins names what makes volumes on the node.
func (a *Agent) describePlugins(n *drover.Node) {
	maps.Copy(n.Attributes, a.volumes.Attributes())
	n.Attributes[volumes.AttributePrefix+drover.DefaultVolumePlugin+".version"] = a.cfg.DroverVersion
}
