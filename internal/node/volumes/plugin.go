package volumes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/program"
	"github.com/drover-project/drover/volume"
)

// Bounds of a plugin's program. The times are Nomad's.
const (
	fingerprintPatience = 5 * time.Second
	requestPatience     = time.Minute
	pluginOutput        = 1 << 20 // bytes of what it prints that are read
	complaintBytes      = 500     // bytes of what it says of a failure that are told
	mostPlugins         = 64
	versionBytes        = 64
)

// plugin is a program of the operator's that makes volumes, by Nomad's protocol: it is called with an operation, is told by DHV_* variables
// about what, and answers with JSON.
type plugin struct {
	name, path string
	cfg        *Config
}

// isPluginName reports whether a file is looked at as a plugin.
func isPluginName(s string) bool {
	const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return s != "" && len(s) <= 64 && s[0] != '.' && strings.Trim(s, usual) == ""
}

// fingerprint returns the plugin's version.
func (p *plugin) fingerprint(ctx context.Context) (version string, err error) {
	out, err := p.run(ctx, fingerprintPatience, "fingerprint")
	if err != nil {
		return "", err
	}
	var said struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return "", p.garbled("fingerprint", out, err)
	}
	if v := said.Version; v == "" || len(v) > versionBytes || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", drover.Errorf(drover.Invalid, `plugin %s: fingerprint: "version" must be 1 to %d printable characters, got %q`,
			p.name, versionBytes, v[:min(len(v), versionBytes)])
	}
	return said.Version, nil
}

// create makes the volume, or changes what there is of it: the request may come again. It returns where it is and how large, 0 = unknown.
func (p *plugin) create(ctx context.Context, w *volume.HostVolume) (path string, size int64, err error) {
	out, err := p.run(ctx, requestPatience, "create", append(p.about(w),
		"DHV_CAPACITY_MIN_BYTES="+strconv.FormatInt(w.RequestedCapacityMinBytes, 10),
		"DHV_CAPACITY_MAX_BYTES="+strconv.FormatInt(w.RequestedCapacityMaxBytes, 10))...)
	if err != nil {
		return "", 0, err
	}
	var said struct {
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return "", 0, p.garbled("create", out, err)
	}
	if path, err = p.mayBe(w, said.Path); err != nil {
		return "", 0, fmt.Errorf("plugin %s: create: %w", p.name, err)
	}
	switch least, most := w.RequestedCapacityMinBytes, w.RequestedCapacityMaxBytes; {
	case said.Bytes < 0:
		return "", 0, drover.Errorf(drover.Invalid, `plugin %s: create: "bytes" must not be negative, got %d`, p.name, said.Bytes)
	case said.Bytes > 0 && said.Bytes < least:
		return "", 0, drover.Errorf(drover.Conflict, "plugin %s: it made %d bytes, which is less than capacity_min (%d)",
			p.name, said.Bytes, least)
	case most > 0 && said.Bytes > most:
		return "", 0, drover.Errorf(drover.Conflict, "plugin %s: it made %d bytes, which is more than capacity_max (%d)",
			p.name, said.Bytes, most)
	}
	return path, said.Bytes, nil
}

// remove deletes the volume, which was at path; it may be gone.
func (p *plugin) remove(ctx context.Context, w *volume.HostVolume, path string) error {
	_, err := p.run(ctx, requestPatience, "delete", append(p.about(w), "DHV_CREATED_PATH="+path)...)
	return err
}

// about is what the program is told of a volume.
func (p *plugin) about(w *volume.HostVolume) []string {
	parameters, err := json.Marshal(w.Parameters)
	if err != nil || w.Parameters == nil {
		parameters = []byte("{}")
	}
	return []string{
		"DHV_VOLUMES_DIR=" + p.cfg.Dir, "DHV_PLUGIN_DIR=" + p.cfg.PluginDir, "DHV_NAMESPACE=" + w.Namespace, "DHV_VOLUME_NAME=" + w.Name,
		"DHV_VOLUME_ID=" + w.ID, "DHV_NODE_ID=" + p.cfg.NodeID, "DHV_NODE_POOL=" + p.cfg.NodePool, "DHV_PARAMETERS=" + string(parameters),
	}
}

// mayBe refuses a path where no volume may be: one that is no folder, that is, holds or lies in the agent's folder, or that is another
// volume's. It returns where the folder is, links being followed.
func (p *plugin) mayBe(w *volume.HostVolume, path string) (real string, err error) {
	if !filepath.IsAbs(path) {
		return "", drover.Errorf(drover.Invalid, `"path" must be absolute, got %q`, path[:min(len(path), complaintBytes)])
	}
	if err := isFolder(path); err != nil {
		return "", err
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("path: %w", err)
	}
	dir, err := filepath.EvalSymlinks(p.cfg.Dir)
	if err == nil && within(real, dir) {
		if rel, err := filepath.Rel(dir, real); err != nil || !strings.HasPrefix(rel, w.ID) {
			return "", drover.Errorf(drover.Invalid, `"path": %s is not the volume's: what is in %s begins with its id`, path, p.cfg.Dir)
		}
		return real, nil
	}
	return real, p.cfg.apart(path, real)
}

func (p *plugin) garbled(operation string, out []byte, err error) error {
	return drover.Errorf(drover.Invalid, "plugin %s: %s: it must print JSON, and printed %q: %w", p.name, operation,
		out[:min(len(out), complaintBytes)], err)
}

// run runs the program to its end, with the processes that it starts, and returns what it printed. It has nothing of the agent's
// environment.
func (p *plugin) run(ctx context.Context, patience time.Duration, operation string, about ...string) ([]byte, error) {
	path, err := safe(p.path)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.name, err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	call := program.Call{
		Path: path, Args: []string{operation}, Dir: "/", Most: pluginOutput,
		Env: append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DHV_OPERATION=" + operation}, about...),
	}
	out, complaint, err := call.Run(limited)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, program.ErrTooMuch):
		return nil, drover.Errorf(drover.Invalid, "plugin %s: %s: it printed more than %d bytes", p.name, operation, pluginOutput)
	case limited.Err() != nil:
		return nil, drover.Errorf(drover.Unavailable, "plugin %s: %s: it did not end within %v", p.name, operation, patience)
	case err != nil:
		return nil, drover.Errorf(drover.Internal, "plugin %s: %s: %w: %s", p.name, operation, err, complained(out, complaint))
	}
	return out, nil
}

// complained is what a program that failed says: the error that it answers with, else the end of what it printed.
func complained(out, complaint []byte) string {
	var said struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(out, &said) == nil && said.Error != "" {
		return program.Plain(said.Error, complaintBytes)
	}
	text := bytes.TrimSpace(slices.Concat(out, []byte(" "), complaint))
	return program.Plain(string(text[max(0, len(text)-complaintBytes):]), complaintBytes)
}

// safe returns where the program is, if it is one that only root and the agent's user can change. Errors: Invalid, and those of
// program.Trusted.
func safe(path string) (real string, err error) {
	if real, err = program.Trusted(path); err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", drover.Errorf(drover.Invalid, "%s is not a file", path)
	case info.Mode()&0o111 == 0:
		return "", drover.Errorf(drover.Invalid, "%s is not executable: chmod 755", path)
	}
	return real, nil
}
