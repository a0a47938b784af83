package config

import (
	"path/filepath"
	"strings"
)

// folderProblems are those of where the node keeps what it has: each folder has one owner.
func (a *Agent) folderProblems(p *problems) {
	c := a.Client
	for key, path := range map[string]string{"client.alloc_dir": c.AllocDir, "client.state_dir": c.StateDir} {
		others := append([]string{"server", "supervisor", "images", "sandbox", "netns", "cni", "host_volumes"}, map[string]string{
			"client.alloc_dir": "client", "client.state_dir": "alloc",
		}[key])
		if path == "" {
			continue
		}
		absolute := filepath.IsAbs(path) && filepath.Clean(path) != "/"
		p.check(absolute, key, "must be an absolute path of a folder of its own, got %q", path)
		if data, err := filepath.Abs(a.DataDir); absolute && a.DataDir != "" && err == nil {
			p.check(!inside(data, path), key, "%s holds data_dir: name a folder of its own, in it or elsewhere", path)
			for _, own := range others {
				p.check(!inside(path, filepath.Join(data, own)), key, "%s is where the agent has other things: name a folder of its own", path)
			}
		}
	}
	if c.AllocDir != "" && c.StateDir != "" {
		p.check(!inside(c.AllocDir, c.StateDir) && !inside(c.StateDir, c.AllocDir), "client.state_dir",
			"%s and client.alloc_dir are within each other: tasks have no business in the state", c.StateDir)
	}
}

// inside reports whether a path is a folder, or lies in it.
func inside(path, folder string) bool {
	path, folder = filepath.Clean(path), filepath.Clean(folder)
	return path == folder || strings.HasPrefix(path, folder+"/")
}
