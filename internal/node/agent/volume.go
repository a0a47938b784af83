package agent

import (
	"maps"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/volumes"
)

// openVolumes reads which volumes the node has that control asked for.
func (a *Agent) openVolumes() *volumes.Manager {
	cfg := volumes.Config{Dir: a.cfg.VolumesDir, Own: a.cfg.DataDir, Allowed: a.cfg.VolumePaths, Log: a.log}
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

// offerVolumes has control and tasks see the node's volumes as they are now.
func (a *Agent) offerVolumes() {
	a.amend(func(n *drover.Node) { n.HostVolumes = a.hostVolumes() })
	a.again.Send()
}
