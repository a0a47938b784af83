package server

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/internal/clock"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
	"drover/internal/node/driver/docker"
	"drover/internal/node/trial"
)

// tiers are the runtimes that are tried, where the daemon has them.
var tiers = []struct { //nolint:gochecknoglobals // a constant
	runtime  string
	memoryMB int64 // of a guest
	pids     int
	loose    map[string]string
}{{"runc", 0, 128, loose}, {"runsc", 512, 1024, looseOfGVisor()}} // gVisor's own kernel, with its threads, is counted to the guest

// looseOfGVisor adds what its kernel lets guests do to their own parts.
func looseOfGVisor() map[string]string {
	l := maps.Clone(loose)
	l["read the supervisor's environment"] = "gVisor shows that of a guest's first process; there is nothing in it but settings of drover-init's own"
	return l
}

// loose is what containers may do by docker's own design; a job can ask for less.
var loose = map[string]string{ //nolint:gochecknoglobals // a constant
	"disk filler":                     "docker does not bound what a container writes to its own layer; the sandbox driver does",
	"gain rights by a setuid program": "set-user-id programs work, as in all containers without security_opt no-new-privileges",
}

// tryDocker tries containers of the daemon that this machine has, with each runtime of ours that it knows. Their image is
// empty: the programs are the machine's, mounted read-only.
func tryDocker(ctx context.Context, dir, binary string, clk clock.Clock, tell func(program, state, says string)) (err error) {
	groups, err := cgroup.New(cgroup.Config{Parent: fmt.Sprintf("drover-doctor-docker-%d", os.Getpid())})
	if err != nil {
		groups = nil
	} else {
		defer func() { err = errors.Join(err, groups.Close(clk)) }()
	}
	d, err := docker.New(docker.Config{
		Owner: dir, Binary: binary, Cgroups: groups, Clock: clk, Log: slog.New(slog.DiscardHandler), AllowVolumes: true, ImageDelay: forever,
	})
	if err != nil {
		return nil // there is no daemon: another line of the doctor says so
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	info := d.Fingerprint(ctx)
	if !info.Healthy {
		return nil
	}
	root, volumes, err := machineRoot()
	if err != nil {
		return err
	}
	ref := fmt.Sprintf("drover-doctor:%d", os.Getpid())
	if err := d.Import(ctx, ref, root); err != nil {
		tell("docker", string(trial.NotTried), err.Error())
		return nil
	}
	defer func() { err = errors.Join(err, d.RemoveImage(context.WithoutCancel(ctx), ref)) }()
	for _, tier := range tiers {
		runtime := tier.runtime
		if !slices.Contains(strings.Split(info.Attributes["driver.docker.runtimes"], ","), runtime) {
			continue
		}
		own := filepath.Join(dir, runtime)
		if err := os.Mkdir(own, 0o755); err != nil { //nolint:gosec // as an agent's
			return err
		}
		list, err := trial.Run(ctx, trial.Config{
			Driver: d, Dir: own, Clock: clk, Group: containerOf, Loose: tier.loose, MemoryMB: tier.memoryMB, Groups: func() ([]string, error) { return nil, nil },
			Task: map[string]any{"image": ref, "runtime": runtime, "network_mode": "none", "pids_limit": tier.pids, "volumes": volumes},
		})
		for _, f := range list {
			tell("docker ("+runtime+"): "+f.Program, string(f.State), f.Says)
		}
		if err != nil {
			tell("docker ("+runtime+")", string(trial.NotTried), err.Error())
		}
	}
	return nil
}

// containerOf is the container's id, after which docker names its control groups.
func containerOf(s driver.State) string {
	var data struct {
		Container string `json:"container"`
	}
	_ = json.Unmarshal(s.Data, &data) // then nothing is inside, which is told
	return data.Container
}

// machineRoot is an archive of a root without programs, and what is to be mounted for it to have the machine's.
func machineRoot() (io.Reader, []any, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	volumes := []any{"/usr:/usr:ro"}
	list := []*tar.Header{{Name: "usr/", Mode: 0o755}, {Name: "tmp/", Mode: 0o1777}, {Name: "var/tmp/", Mode: 0o1777}, {Name: "root/", Mode: 0o700}, {Name: "mnt/", Mode: 0o755}, {Name: "etc/", Mode: 0o755}}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64"} {
		info, err := os.Lstat("/" + name)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink("/" + name)
			if err != nil {
				return nil, nil, err
			}
			list = append(list, &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777})
		default:
			list = append(list, &tar.Header{Name: name + "/", Mode: 0o755})
			volumes = append(volumes, "/"+name+":/"+name+":ro")
		}
	}
	for _, h := range list {
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, nil, err
		}
	}
	return &text, volumes, w.Close()
}
