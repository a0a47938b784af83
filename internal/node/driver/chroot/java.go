package chroot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/image"
)

// javaProbe remembers what a java program said of itself, until another lies at its path.
type javaProbe struct {
	mu    sync.Mutex
	found runtime // guarded by mu
}

// runtime is a java program.
type runtime struct {
	path    string // on the machine, without links
	inside  string // as tasks see it
	changed time.Time

	version, runtime, vm string
}

// attributes are Nomad's.
func (j runtime) attributes(set map[string]string) {
	set["driver.java.version"], set["driver.java.runtime"], set["driver.java.vm"] = j.version, j.runtime, j.vm
}

// javaPatience is how long a java program may take to tell its version on a machine that is busy.
const javaPatience = 10 * time.Second

// findJava finds the machine's java, and asks it once for its version. Errors: Unavailable.
func (d *Driver) findJava(ctx context.Context) (runtime, error) {
	d.java.mu.Lock()
	defer d.java.mu.Unlock()
	name, err := lookPath(d.cfg.Path, "java")
	if err != nil {
		return runtime{}, drover.Errorf(drover.Unavailable, "there is no java on the agent's PATH: install one, such as default-jre-headless")
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return runtime{}, drover.Errorf(drover.Unavailable, "finding java: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return runtime{}, drover.Errorf(drover.Unavailable, "finding java: %w", err)
	}
	if j := d.java.found; j.path == real && j.changed.Equal(info.ModTime()) {
		return j, nil
	}
	j := runtime{path: real, changed: info.ModTime()}
	var ok bool
	if j.inside, ok = image.Inside(d.cfg.Trees, real); !ok {
		return j, drover.Errorf(drover.Unavailable, "tasks do not see java, which is %s: add its folder to chroot_env of client", real)
	}
	ctx, cancel := d.cfg.Clock.WithTimeout(ctx, javaPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, real, "-version").CombinedOutput()
	if err != nil {
		return j, drover.Errorf(drover.Unavailable, "%s -version: %w: %s", real, err, bytes.TrimSpace(out[:min(len(out), 200)]))
	}
	if j.version, j.runtime, j.vm = readVersion(string(out)); j.version == "" {
		return j, drover.Errorf(drover.Unavailable, "%s -version says no version: %q", real, out[:min(len(out), 200)])
	}
	d.java.found = j
	return j, nil
}

// lookPath finds a program on a PATH, "" = the agent's.
func lookPath(dirs, name string) (string, error) {
	if dirs == "" {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(dirs) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}

// readVersion reads what java -version prints: three lines, after those that begin otherwise, such as "Picked up JAVA_TOOL_OPTIONS".
func readVersion(text string) (version, runtime, vm string) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		_, rest, ok := strings.Cut(line, ` version "`)
		if !ok {
			continue
		}
		version, _, _ = strings.Cut(rest, `"`)
		if i+1 < len(lines) {
			runtime = strings.TrimSpace(lines[i+1])
		}
		if i+2 < len(lines) {
			vm = strings.TrimSpace(lines[i+2])
		}
		return version, runtime, vm
	}
	return "", "", ""
}

// javaCommand is what a java task runs.
func (d *Driver) javaCommand(ctx context.Context, c *taskConfig) ([]string, error) {
	j, err := d.findJava(ctx)
	if err != nil {
		return nil, fmt.Errorf("java: %w", err)
	}
	argv := append([]string{j.inside}, c.jvmOptions...)
	if c.classPath != "" {
		argv = append(argv, "-cp", c.classPath)
	}
	if c.jarPath != "" {
		argv = append(argv, "-jar", c.jarPath)
	}
	if c.class != "" {
		argv = append(argv, c.class)
	}
	return append(argv, c.args...), nil
}
