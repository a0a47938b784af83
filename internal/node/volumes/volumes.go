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
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rotation"
	"github.com/drover-project/drover/internal/wake"
	"github.com/drover-project/drover/volume"
)

// Config says where volumes are.
type Config struct {
	Dir  string   // in which their folders are made; absolute
	File string   // in which they are remembered; "" = they are not
	Own  []string // the agent's folders: what it has there, keys and other tasks' secrets, is no volume
	// Allowed are folders that may be registered, with all that lies in them.
	Allowed []string
	// PluginDir is where programs are that make volumes, by Nomad's protocol; absolute; "" = there are none.
	PluginDir string
	// Programs are told the node's id and pool.
	NodeID, NodePool string
	Clock            clock.Clock
	Log              *slog.Logger
}

// Volumes has the node's volumes.
type Volumes struct {
	cfg   Config
	news  wake.Signal
	other wake.Signal // the plugins are others

	mu      sync.Mutex // guards what follows
	want    []*volume.HostVolume
	volume  map[string]*known   // by id
	plugins map[string]*finding // by name
}

// known is what the node knows of a volume. It is stored as JSON.
type known struct {
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
func New(cfg Config) *Volumes {
	m := &Volumes{cfg: cfg, news: wake.NewSignal(), other: wake.NewSignal(), volume: map[string]*known{}}
	if cfg.File == "" {
		return m
	}
	var list []*known
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
func (m *Volumes) Offered() map[string]*drover.HostVolumeInfo {
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
func (m *Volumes) Want(list []*volume.HostVolume) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.want = list
	listed := map[string]bool{}
	for _, w := range list {
		listed[w.ID] = true
		if v := m.volume[w.ID]; v != nil && w.State == volume.HostVolumeDeleting && v.Wanted != w.Wanted && !v.doomed {
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

// mostAtOnce is how many plugins may work at the same time.
const mostAtOnce = 8

// Run does what is wanted until ctx ends. It calls changed, in its own goroutine, whenever the offer or the plugins changed. What plugins
// do may take long, so it goes on beside the rest, one after the other for each volume.
func (m *Volumes) Run(ctx context.Context, changed func()) {
	var works sync.WaitGroup
	defer works.Wait()
	looked := make(chan struct{})             // closed when it is known which plugins there are
	works.Go(func() { m.watch(ctx, looked) }) // ends with ctx
	results, slots, busy := make(chan *known), make(chan struct{}, mostAtOnce), map[string]bool{}
	for {
		for _, w := range m.due() {
			if ctx.Err() != nil {
				return
			}
			if busy[w.ID] {
				continue
			}
			if w.Registered || w.PluginID == volume.DefaultVolumePlugin {
				if m.done(m.perform(ctx, w)) {
					changed()
				}
				continue
			}
			busy[w.ID] = true
			works.Go(func() { // ends with ctx, or with the program, whose time is bounded
				select {
				case <-looked:
					m.performLong(ctx, w, slots, results)
				case <-ctx.Done():
				}
			})
		}
		select {
		case <-m.news.C():
		case <-m.other.C():
			changed()
		case v := <-results:
			delete(busy, v.ID)
			if m.done(v) {
				changed()
			}
		case <-ctx.Done():
			return
		}
	}
}

// performLong performs a request when there is a slot.
func (m *Volumes) performLong(ctx context.Context, w *volume.HostVolume, slots chan struct{}, results chan<- *known) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return
	}
	v := m.perform(ctx, w)
	if ctx.Err() != nil {
		return // it was cut short: it is asked for again
	}
	select {
	case results <- v:
	case <-ctx.Done():
	}
}

// watch looks for plugins, and then again now and then.
func (m *Volumes) watch(ctx context.Context, looked chan struct{}) {
	if m.cfg.PluginDir == "" {
		close(looked)
		return
	}
	if m.look(ctx) {
		m.other.Send()
	}
	close(looked)
	for clock.Sleep(ctx, m.cfg.Clock, lookEvery) {
		if m.look(ctx) {
			m.other.Send()
		}
	}
}

// due lists the requests that are neither done nor failed.
func (m *Volumes) due() (out []*volume.HostVolume) {
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
func (m *Volumes) done(v *known) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.want, func(w *volume.HostVolume) bool { return w.ID == v.ID }) {
		return false
	}
	m.volume[v.ID] = v
	m.save()
	return true
}

// perform makes or deletes a volume and returns what became of it.
func (m *Volumes) perform(ctx context.Context, w *volume.HostVolume) *known {
	v := &known{
		ID: w.ID, Namespace: w.Namespace, Name: w.Name, Path: w.HostPath, Bytes: w.CapacityBytes, Registered: w.Registered, Wanted: w.Wanted,
	}
	var err error
	switch deleting := w.State == volume.HostVolumeDeleting; {
	case !id.Valid(w.ID):
		err = drover.Errorf(drover.Invalid, "volume id %q: is not a UUID", w.ID)
	case w.Registered && deleting:
		v.Gone = true
	case w.Registered:
		var real string
		if real, err = m.mayRegister(w.HostPath); err == nil {
			v.Path = real
		}
	case w.PluginID != volume.DefaultVolumePlugin && deleting:
		err = m.removeBy(ctx, w)
		v.Gone = err == nil
	case w.PluginID != volume.DefaultVolumePlugin:
		v.Path, v.Bytes, err = m.makeBy(ctx, w)
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

// makeBy has a plugin make a volume, or change one. Of one that was not there before nothing is left if that fails.
func (m *Volumes) makeBy(ctx context.Context, w *volume.HostVolume) (path string, size int64, err error) {
	p, err := m.plugin(w.PluginID)
	if err != nil {
		return w.HostPath, w.CapacityBytes, err
	}
	if err := closed(m.cfg.Dir); err != nil {
		return w.HostPath, w.CapacityBytes, fmt.Errorf("making the folder of host volumes: %w", err)
	}
	path, size, err = p.create(ctx, w)
	if err == nil || ctx.Err() != nil {
		return path, size, err
	}
	if w.HostPath == "" {
		if undone := p.remove(ctx, w, ""); undone != nil {
			m.cfg.Log.Warn("what a plugin may have made of a volume is still there", "volume", w.Name, "id", w.ID, "error", undone)
		}
	}
	return w.HostPath, w.CapacityBytes, err
}

// removeBy has a plugin delete a volume.
func (m *Volumes) removeBy(ctx context.Context, w *volume.HostVolume) error {
	p, err := m.plugin(w.PluginID)
	if err != nil {
		return err
	}
	return p.remove(ctx, w, w.HostPath)
}

func (m *Volumes) path(id string) string { return filepath.Join(m.cfg.Dir, id) }

// mayRegister refuses what is no folder, and folders by which a job would reach the agent's own. It returns where the folder is, links
// being followed: who can change one of them later does not choose what is mounted.
func (m *Volumes) mayRegister(path string) (real string, err error) {
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
	return real, m.cfg.apart(path, real)
}

// apart refuses a path, which is really at real, by which a job would reach the agent's own folder.
func (c *Config) apart(path, real string) error {
	for _, folder := range c.Own {
		own, err := filepath.EvalSymlinks(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the agent's folder: %w", err)
		}
		if within(real, own) || within(own, real) {
			return drover.Errorf(drover.Invalid, "HostPath: %s is, holds or lies in the agent's data folder: name another one", path)
		}
	}
	return nil
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
func (m *Volumes) save() {
	if m.cfg.File == "" {
		return
	}
	list := make([]*known, 0, len(m.volume))
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
