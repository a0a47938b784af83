package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/volume"
)

// lookEvery is how often the folder of plugins is looked at. All are asked again when something in it changed, and those that failed each
// time.
const lookEvery = 30 * time.Second

// finding is what is known of a plugin.
type finding struct {
	plugin
	state   string // of its file
	version string
	failure string // why it is not used; "" = it is
}

// Attributes are what the node tells of the plugins, by Nomad's names: the version of each that works, and why others do not.
func (m *Volumes) Attributes() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for name, f := range m.plugins {
		if f.failure == "" {
			out[attribute(name, "version")] = f.version
		} else {
			out[attribute(name, "missing")] = f.failure
		}
	}
	return out
}

func attribute(plugin, what string) string { return AttributePrefix + plugin + "." + what }

// AttributePrefix begins the attributes of a node about plugins.
const AttributePrefix = "plugins.host_volume."

// plugin returns the plugin of the name. Errors: NotFound with the reason.
func (m *Volumes) plugin(name string) (*plugin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.plugins[name]
	switch {
	case f == nil:
		return nil, drover.Errorf(drover.NotFound, "this node has no host volume plugin %q", name)
	case f.failure != "":
		return nil, drover.Errorf(drover.NotFound, "this node cannot use the host volume plugin %q: %s", name, f.failure)
	}
	p := f.plugin
	return &p, nil
}

// look asks the plugins of the folder what they are, all at once, and reports whether something is different now. A folder that is not
// there has none.
func (m *Volumes) look(ctx context.Context) (changed bool) {
	m.mu.Lock()
	before := m.plugins
	m.mu.Unlock()
	now := map[string]*finding{}
	var asked sync.WaitGroup
	for _, f := range m.list() {
		old := before[f.name]
		if old != nil && old.state == f.state && (old.failure == "" || f.failure == old.failure) {
			f = old
		} else if f.failure == "" {
			asked.Go(func() { // ends with the program, whose time is bounded
				version, err := f.fingerprint(ctx)
				if f.version = version; err != nil {
					f.failure = strings.TrimSpace(err.Error())
				}
			})
		}
		now[f.name] = f
	}
	asked.Wait()
	if ctx.Err() != nil {
		return false
	}
	for name, f := range now {
		old := before[name]
		if old != nil && old.failure == f.failure && old.version == f.version {
			continue
		}
		changed = true
		if f.failure != "" {
			m.cfg.Log.Warn("a host volume plugin is not used", "plugin", name, "error", f.failure)
		} else {
			m.cfg.Log.Info("found a host volume plugin", "plugin", name, "version", f.version)
		}
	}
	changed = changed || len(before) != len(now)
	m.mu.Lock()
	m.plugins = now
	m.mu.Unlock()
	return changed
}

// list lists the files of the folder of plugins.
func (m *Volumes) list() (out []*finding) {
	entries, err := os.ReadDir(m.cfg.PluginDir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !isPluginName(e.Name()) || e.IsDir() {
			continue
		}
		f := &finding{plugin: plugin{name: e.Name(), path: filepath.Join(m.cfg.PluginDir, e.Name()), cfg: &m.cfg}}
		switch info, err := os.Stat(f.path); {
		case e.Name() == volume.DefaultVolumePlugin:
			continue // it is the agent's own
		case len(out) == mostPlugins:
			m.cfg.Log.Warn("there are too many host volume plugins: the rest is not looked at", "folder", m.cfg.PluginDir, "most", mostPlugins)
			return out
		case err != nil:
			f.failure = err.Error()
		default:
			st := info.Sys().(*syscall.Stat_t)
			f.state = fmt.Sprint(st.Ino, st.Ctim, st.Size)
		}
		out = append(out, f)
	}
	return out
}
