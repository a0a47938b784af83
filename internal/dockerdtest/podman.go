package dockerdtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Podman is a service of podman's that shares nothing with the machine's.
type Podman struct {
	Dir      string
	Endpoint string
	service  *exec.Cmd
}

// StartPodman starts a service, with the images of tests from a docker daemon. Stop it.
func StartPodman(docker string) (*Podman, error) {
	dir, err := os.MkdirTemp("/tmp", "pm") // short: podman takes no run folder of more than 50 characters
	if err != nil {
		return nil, err
	}
	p := &Podman{Dir: dir, Endpoint: "unix://" + filepath.Join(dir, "sock")}
	config := fmt.Sprintf(`[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
events_logger = "none"
cgroup_manager = "cgroupfs"
lock_type = "file"
tmp_dir = %q
`, dir+"/tmp")
	if err = os.WriteFile(p.config(), []byte(config), 0o600); err == nil {
		err = p.Run()
	}
	if err == nil {
		copied := fmt.Sprintf("docker -H %s save drover-test/busybox:1 drover-test/bare:1 | docker -H %s load", docker, p.Endpoint)
		_, err = run("sh", "-c", copied)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Podman) config() string { return filepath.Join(p.Dir, "containers.conf") }

// Run starts the service again, and waits until it answers.
func (p *Podman) Run() error {
	p.service = exec.Command("podman", "--root", p.Dir+"/root", "--runroot", p.Dir+"/run", "system", "service", "--time", "0", p.Endpoint)
	p.service.Env = append(os.Environ(), "CONTAINERS_CONF="+p.config())
	p.service.Dir = p.Dir // where conmon leaves notes
	var said bytes.Buffer
	p.service.Stderr = &said
	if err := p.service.Start(); err != nil {
		return err
	}
	_, err := run("sh", "-c", "for i in $(seq 300); do docker -H "+p.Endpoint+" version >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1")
	if err != nil {
		return errors.Join(err, p.Halt(), errors.New(said.String()))
	}
	return nil
}

// Halt kills the service; containers go on.
func (p *Podman) Halt() error {
	if p.service == nil || p.service.Process == nil {
		return nil
	}
	if err := p.service.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = p.service.Wait() // it was killed
	return nil
}

// Docker runs docker's command at the service.
func (p *Podman) Docker(args ...string) (string, error) {
	return run("docker", append([]string{"-H", p.Endpoint}, args...)...)
}

// Stop ends the containers and the service, waits for what podman started (a container's end is cleaned up by a podman of its own, which
// mounts the folder again), and removes its folder.
func (p *Podman) Stop() error {
	_, err := run("sh", "-c", fmt.Sprintf("docker -H %s ps -aq | xargs -r docker -H %s rm -f", p.Endpoint, p.Endpoint))
	err = errors.Join(err, p.Halt(), p.awaitOthers())
	_, _ = run("umount", "-l", p.Dir+"/root/overlay") // where podman bound it
	return errors.Join(err, os.RemoveAll(p.Dir))
}

// awaitOthers waits until no process works in the folder: each names it among its arguments. The pattern does not match itself.
func (p *Podman) awaitOthers() error {
	_, err := run("sh", "-c", "for i in $(seq 600); do at=$(grep -ls '[/]"+p.Dir[1:]+"/' /proc/[0-9]*/cmdline) || exit 0; sleep 0.1; done; "+
		"for f in $at; do tr '\\0' ' ' <$f; echo; done; exit 1")
	return err
}
