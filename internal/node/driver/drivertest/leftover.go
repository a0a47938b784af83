package drivertest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dead reports whether the process has ended, and only its parent has not taken its exit status yet: it holds nothing any
// more, but its v2 group's name sticks to it. That what the agent started is collected is the supervisor's to test.
func dead(proc string) bool {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	return err != nil || bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}

// podmans reports whether this is the process by which podman watches a container. It ends by itself some time after the container was
// removed.
func podmans(proc string) bool {
	program, err := os.Readlink(filepath.Join(proc, "exe"))
	return err == nil && strings.TrimSuffix(program, " (deleted)") == "/usr/bin/conmon"
}

// leftovers lists processes, mounts, control groups and folders that carry the allocation's id or lie in its folder.
func leftovers(alloc, root string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, n := range names {
		if dead(filepath.Dir(n)) || podmans(filepath.Dir(n)) {
			continue
		}
		b, err := os.ReadFile(n)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(n), "cmdline"))
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(n), "cgroup")) // a program may hide the other two
		if err == nil && bytes.Contains(b, []byte("NOMAD_ALLOC_ID="+alloc)) || bytes.Contains(line, []byte(alloc)) ||
			bytes.Contains(groups, []byte(alloc)) {
			found = append(found, "process "+filepath.Dir(n)+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	// Mounts are looked for in the agent's namespace only; those of a task's own end with its processes.
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, root) || strings.Contains(line, alloc) {
			found = append(found, "mount "+strings.TrimSpace(line))
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(d.Name(), alloc) {
			found = append(found, "control group "+path)
			return fs.SkipDir
		}
		return nil
	})
	states, _ := filepath.Glob(filepath.Join(root, "state", "*"))
	for _, s := range states {
		found = append(found, "folder "+s)
	}
	return found
}
