package trial

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes lists, by number, those with the text among their arguments or in their environment.
func processes(text string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid := filepath.Base(dir)
		// This process is no leftover, whatever its arguments say.
		if n, err := strconv.Atoi(pid); err != nil || n == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(dir, "environ")) // not readable: then the arguments have to do
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if bytes.Contains(line, []byte(text)) || bytes.Contains(env, []byte(text)) || bytes.Contains(groups, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// count looks for everything that the trial could have left.
func (t *trial) count() {
	var left []string
	add := func(what string, list []string) {
		if len(list) > 0 {
			left = append(left, fmt.Sprintf("%s %s", what, strings.Join(list, ", ")))
		}
	}
	add("processes", processes(t.token))
	add("mounts", mounts(t.cfg.Dir))
	states, _ := filepath.Glob(filepath.Join(t.cfg.Dir, "*", "state"))
	add("folders", states)
	if t.cfg.Groups != nil {
		groups, err := t.cfg.Groups()
		if err != nil {
			groups = append(groups, err.Error())
		}
		add("control groups", groups)
	}
	f := Finding{"leftovers", Contained, "none: no process, mount, control group or folder"}
	if len(left) > 0 {
		f.State, f.Says = Escaped, strings.Join(left, "; ")
	}
	t.findings = append(t.findings, f)
}

// mounts returns the mount points of this process's namespace whose line names the folder, as source or as target.
func mounts(dir string) (found []string) {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.Contains(line, dir) {
			found = append(found, f[4])
		}
	}
	return found
}
