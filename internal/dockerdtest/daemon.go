package dockerdtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Off reports whether tests with docker are left out.
func Off() bool { return os.Getenv("DROVER_TEST_DOCKER") == "off" }

// Daemon is a running dockerd.
type Daemon struct {
	Dir      string // all that it has; more may be put there
	Endpoint string
}

const prefix = "dk" // short, as sockets' names are; then the test's process

// Start starts a daemon with these options of dockerd's. What tests left that were killed is ended before. Stop it.
func Start(options ...string) (*Daemon, error) {
	sweep()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	d := &Daemon{Dir: dir}
	out, err := script(append([]string{"start", dir}, options...)...)
	if err != nil {
		_ = d.Stop() // the first error tells more
		return nil, fmt.Errorf("%w\nto leave these tests out, set DROVER_TEST_DOCKER=off", err)
	}
	lines := strings.Fields(out)
	d.Endpoint = lines[len(lines)-1]
	return d, nil
}

// Stop ends the daemon and its containers, and removes its folder.
func (d *Daemon) Stop() error {
	_, err := script("stop", d.Dir)
	return err
}

// Halt ends only the daemon.
func (d *Daemon) Halt() error {
	_, err := script("halt", d.Dir)
	return err
}

// Restart ends only the daemon, and starts it again.
func (d *Daemon) Restart() error {
	_, err := script("restart", d.Dir)
	return err
}

// Pid is the daemon's process.
func (d *Daemon) Pid() (int, error) {
	text, err := os.ReadFile(filepath.Join(d.Dir, "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Docker runs docker's own command.
func (d *Daemon) Docker(args ...string) (string, error) {
	return run("docker", append([]string{"-H", d.Endpoint}, args...)...)
}

func script(args ...string) (string, error) {
	top, err := os.Getwd()
	for err == nil {
		path := filepath.Join(top, "scripts", "docker")
		if _, err := os.Stat(path); err == nil {
			return run(path, args...)
		}
		if top == "/" {
			return "", fmt.Errorf("scripts/docker: %w", os.ErrNotExist)
		}
		top = filepath.Dir(top)
	}
	return "", err
}

func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// sweep ends the daemons of tests whose process is no more.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*-*"))
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_, _ = script("stop", dir) // the next run tries again
		}
	}
}
