package volumes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/wake"
)

// Config says where volumes are.
type Config struct {
	Dir  string // in which their folders are made; absolute
	File string // in which they are remembered; "" = they are not
	Own  string // the agent's folder: what it has there, keys and other tasks' secrets, is no volume
	// Allowed are folders that may be registered, with all that lies in them.
	Allowed []string
	Log     *slog.Logger
}

// Manager has the node's volumes.
type Manager struct {
	cfg  Config
	news wake.Signal

	mu     sync.Mutex // guards what follows
	want   []*drover.HostVolume
	volume map[string]*volume // by id
}

// volume is what the node knows of a volume. It is stored as JSON.
type volume struct {
	ID         string
	Namespace  string
	Name       string
	Path       string
	Bytes      int64
	Registered bool
	Wanted     uint64 // of the last request that was done, or could not be

	Failure string `json:",omitempty"`
	Gone    bool   `json:",omitempty"`

	doomed bool // it is to be deleted, and not mounted any more
}

// New reads which volumes the node had. If that cannot be read, there are none until control says what it wants: folders that are there
// are taken up again then.
func New(cfg Config) *Manager {
	m := &Manager{cfg: cfg, news: wake.NewSignal(), volume: map[string]*volume{}}
	if cfg.File == "" {
		return m
	}
	var list []*volume
	data, err := os.ReadFile(cfg.File)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			cfg.Log.Error("which host volumes there are cannot be read: they come back when control names them", "error", err)
		}
		return m
	}
	for _, v := range list {
		if v != nil {
			m.volume[v.ID] = v
		}
	}
	return m
}

// Offered returns the volumes by name, for the node's record: those that can be mounted, and what became of the others.
func (m *Manager) Offered() map[string]*drover.HostVolumeInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]*drover.HostVolumeInfo{}
	for _, v := range m.volume {
		if v.doomed {
			continue
		}
		out[v.Name] = &drover.HostVolumeInfo{Path: v.Path, ID: v.ID, Report: &drover.HostVolumeReport{
			Namespace: v.Namespace, Wanted: v.Wanted, CapacityBytes: v.Bytes, Failure: v.Failure, Gone: v.Gone,
		}}
	}
	return out
}

// Want takes what control wants. What is to be deleted, or is wanted no more, is not offered from then on; all else Run does. It reports
// whether the offer changed.
func (m *Manager) Want(list []*drover.HostVolume) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.want = list
	listed := map[string]bool{}
	for _, w := range list {
		listed[w.ID] = true
		if v := m.volume[w.ID]; v != nil && w.State == drover.HostVolumeDeleting && v.Wanted != w.Wanted && !v.doomed {
			v.doomed, changed = true, true
		}
	}
	for id, v := range m.volume {
		if listed[id] {
			continue
		}
		if !v.Gone && v.Failure == "" {
			m.cfg.Log.Warn("control does not know a host volume any more: it is not mounted, and its folder stays", "volume", v.Name, "path", v.Path)
		}
		delete(m.volume, id)
		changed = true
	}
	if changed {
		m.save()
	}
	m.news.Send()
	return changed
}

// Run does what is wanted until ctx ends. It calls changed, in its own goroutine, whenever the offer changed.
func (m *Manager) Run(ctx context.Context, changed func()) {
	for {
		select {
		case <-m.news.C():
		case <-ctx.Done():
			return
		}
		for _, w := range m.due() {
			if ctx.Err() != nil {
				return
			}
			if m.done(m.perform(w)) {
				changed()
			}
		}
	}
}

// due lists the requests that are neither done nor failed.
func (m *Manager) due() (out []*drover.HostVolume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.want {
		if v := m.volume[w.ID]; v == nil || v.Wanted != w.Wanted {
			out = append(out, w)
		}
	}
	return out
}

// done remembers what became of a request; false if control does not want to know any more.
func (m *Manager) done(v *volume) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.want, func(w *drover.HostVolume) bool { return w.ID == v.ID }) {
		return false
	}
	m.volume[v.ID] = v
	m.save()
	return true
}

// perform makes or deletes a volume and returns what became of it.
func (m *Manager) perform(w *drover.HostVolume) *volume {
	v := &volume{
		ID: w.ID, Namespace: w.Namespace, Name: w.Name, Path: w.HostPath, Bytes: w.CapacityBytes, Registered: w.Registered, Wanted: w.Wanted,
	}
	var err error
	switch deleting := w.State == drover.HostVolumeDeleting; {
	case !id.Valid(w.ID):
		err = drover.Errorf(drover.Invalid, "volume id %q: is not a UUID", w.ID)
	case w.Registered && deleting:
		v.Gone = true
	case w.Registered:
		var real string
		if real, err = m.mayRegister(w.HostPath); err == nil {
			v.Path = real
		}
	case w.PluginID != drover.DefaultVolumePlugin:
		err = drover.Errorf(drover.NotFound, "this node has no host volume plugin %q", w.PluginID)
	case deleting:
		err = remove(m.path(w.ID))
		v.Gone = err == nil
	default:
		v.Path = m.path(w.ID)
		err = mkdir(m.cfg.Dir, v.Path, w.Parameters)
	}
	if err != nil {
		v.Failure = err.Error()
		m.cfg.Log.Warn("a host volume could not be made or deleted", "volume", w.Name, "id", w.ID, "state", w.State, "error", err)
	}
	return v
}

func (m *Manager) path(id string) string { return filepath.Join(m.cfg.Dir, id) }

// mayRegister refuses what is no folder, and folders by which a job would reach the agent's own. It returns where the folder is, links
// being followed: who can change one of them later does not choose what is mounted.
func (m *Manager) mayRegister(path string) (real string, err error) {
	if err := isFolder(path); err != nil {
		return "", err
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("HostPath: %w", err)
	}
	if !slices.ContainsFunc(m.cfg.Allowed, func(dir string) bool { return within(real, filepath.Clean(dir)) }) {
		return "", drover.Errorf(drover.Forbidden, "HostPath: %s may not be registered on this node: its client.host_volume_paths are %q", path,
			m.cfg.Allowed)
	}
	own, err := filepath.EvalSymlinks(m.cfg.Own)
	if m.cfg.Own == "" || errors.Is(err, fs.ErrNotExist) {
		return real, nil
	}
	if err != nil {
		return "", fmt.Errorf("the agent's folder: %w", err)
	}
	if within(real, own) || within(own, real) {
		return "", drover.Errorf(drover.Invalid, "HostPath: %s is, holds or lies in the agent's data folder: name another one", path)
	}
	return real, nil
}

// within reports whether path is dir or lies in it. Both are absolute and clean.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// isFolder refuses what is no folder.
func isFolder(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil:
		return fmt.Errorf("HostPath: %w", err)
	case !info.IsDir():
		return drover.Errorf(drover.Invalid, "HostPath: %s is not a folder", path)
	}
	return nil
}

// save writes the file. A failure is only logged: control says again what it wants. m.mu is held.
func (m *Manager) save() {
	if m.cfg.File == "" {
		return
	}
	list := make([]*volume, 0, len(m.volume))
	for _, v := range m.volume {
		list = append(list, v)
	}
	slices.SortFunc(list, byID)
	data, err := json.Marshal(list)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.cfg.File), 0o700)
	}
	if err == nil {
		err = rotation.WriteFile(m.cfg.File, data)
	}
	if err != nil {
		m.cfg.Log.Error("the node's host volumes are not remembered", "error", err)
	}
}
