package cni

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/program"
)

// Found is what a machine has for CNI.
type Found struct {
	Plugins  map[string]string // versions by the names of plugins
	Networks map[string]string // by name: "" if it can be used, else why not
}

// The bounds of asking plugins for their versions.
const (
	maxPlugins  = 128
	lookTimeout = 5 * time.Second // of all together
)

// Look finds the networks and the plugins, which must not be changed. It runs each plugin once, for its version, and again only when files
// have changed.
func (n *Networks) Look(ctx context.Context) Found {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := n.signature(); n.looked == "" || now != n.looked {
		n.found, n.looked = n.look(ctx), now
	}
	return n.found
}

// signature changes with the files of networks and plugins.
func (n *Networks) signature() string {
	var b strings.Builder
	for _, folder := range append([]string{n.cfg.ConfigDir}, n.cfg.Path...) {
		entries, _ := os.ReadDir(folder) // none is a state, too
		fmt.Fprintln(&b, folder)
		for _, e := range entries[:min(len(entries), maxFiles)] {
			var st unix.Stat_t
			if unix.Stat(filepath.Join(folder, e.Name()), &st) == nil {
				fmt.Fprintln(&b, e.Name(), st.Mtim, st.Ctim, st.Size, st.Ino)
			}
		}
	}
	return b.String()
}

func (n *Networks) look(ctx context.Context) Found {
	found := Found{Plugins: map[string]string{}, Networks: map[string]string{}}
	all, err := n.all()
	if err != nil {
		n.cfg.Log.Warn("CNI networks are not offered", "error", err)
	}
	for name, network := range all {
		if found.Networks[name] = ""; network.why != nil {
			found.Networks[name] = plain(network.why.Error())
			n.cfg.Log.Warn("a CNI network is not offered", "network", name, "file", network.file, "error", network.why)
		}
	}
	ctx, cancel := n.cfg.Clock.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for _, folder := range n.cfg.Path {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // no such folder: no plugins
		}
		for _, e := range entries[:min(len(entries), maxPlugins)] {
			if _, known := found.Plugins[e.Name()]; known {
				continue // the first folder counts
			}
			if version := n.version(ctx, filepath.Join(folder, e.Name())); version != "" {
				found.Plugins[e.Name()] = version
			}
		}
	}
	return found
}

// version is what a plugin calls its own, as of those of the CNI project: "CNI bridge plugin v1.1.1". Those that do not say, as Debian's,
// have "unknown"; "" if it is no plugin.
func (n *Networks) version(ctx context.Context, path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	if _, err := program.Trusted(path); err != nil {
		n.cfg.Log.Warn("a CNI plugin is not run", "plugin", path, "error", err)
		return ""
	}
	out, words, err := run(ctx, path, nil, nil)
	if err != nil {
		n.cfg.Log.Warn("a CNI plugin does not say its version", "plugin", path, "error", err)
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(append(out, words...)))
	for lines.Scan() {
		if said, ok := strings.CutPrefix(lines.Text(), "CNI "); ok {
			if _, version, ok := strings.Cut(said, " plugin "); ok {
				version = strings.TrimPrefix(version, "version ")
				return plain(strings.TrimPrefix(version, "v"))
			}
		}
	}
	return ""
}
