package agent

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/allocrunner"
	"github.com/drover-project/drover/internal/node/volumes"
	"github.com/drover-project/drover/volume"
)

// openVolumes reads which volumes the node has that control asked for.
func (a *Agent) openVolumes() *volumes.Volumes {
	cfg := volumes.Config{
		Dir: a.cfg.VolumesDir, Own: []string{a.cfg.DataDir, a.cfg.AllocDir, a.cfg.StateDir},
		Allowed: a.cfg.VolumePaths, PluginDir: a.cfg.VolumePluginDir,
		NodeID: a.identity.ID, NodePool: a.cfg.NodePool, Clock: a.clock, Log: a.log,
	}
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(a.cfg.DataDir, "host_volumes")
	}
	if !a.cfg.InMemory {
		cfg.File = filepath.Join(a.cfg.StateDir, "host_volumes.json")
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
	n.Attributes[volumes.AttributePrefix+volume.DefaultVolumePlugin+".version"] = a.cfg.DroverVersion
}

// writers returns the older allocations that write a dynamic volume which the allocation may not write beside them.
func (a *Agent) writers(alloc *drover.Allocation) (out []*allocrunner.Runner) {
	writes, known := alloc.VolumeWrites(), a.node.Load().HostVolumes
	writes = slices.DeleteFunc(writes, func(w drover.VolumeWrite) bool { return known[w.Name] == nil || known[w.Name].ID == "" })
	if len(writes) == 0 {
		return nil
	}
	for _, r := range a.runners() {
		v := r.View()
		older := v.Alloc.ID != alloc.ID && v.Alloc.CreateIndex < alloc.CreateIndex && v.Alloc.Namespace == alloc.Namespace
		if older && !v.Ended() && contend(writes, v.Alloc.VolumeWrites()) {
			out = append(out, r)
		}
	}
	return out
}

func contend(writes, others []drover.VolumeWrite) bool {
	return slices.ContainsFunc(writes, func(w drover.VolumeWrite) bool { return slices.ContainsFunc(others, w.Contends) })
}
