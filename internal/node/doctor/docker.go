package doctor

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/docker"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/trial"
)

// tiers are the runtimes that are tried, where the daemon has them.
var tiers = []struct { // a constant
	// runtime is docker's name for it. Runtimes that the daemon does not list are left out.
	runtime  string
	memoryMB int64 // of a guest
	pids     int
	loose    map[string]string
	network  bool // Debian's gVisor has none on newer kernels
	// gVisor's own kernel, with its threads, is counted to the guest
}{{"runc", 0, 128, loose, true}, {"runsc", 512, 1024, looseOfGVisor, false}}

// loose is what containers get by docker's own design.
var loose = map[string]string{ // a constant
	"open other doors to the kernel": "docker's own seccomp profile lets netlink's protocols be opened; the sandbox driver opens " +
		"routes only",
	"learn of the machine and its load":     "docker covers less of /proc; the sandbox driver shows a sandbox its own",
	"read what only the machine's root may": rootsFilesLoose,
}

// keepImages is an image delay that never ends.
const keepImages = -1

const rootsFilesLoose = "root of a container is the machine's root to what is mounted from it, as the machine's programs are here"

// looseOfGVisor is what its kernel lets guests do to their own parts.
var looseOfGVisor = map[string]string{ // a constant
	"read the supervisor's environment": "gVisor shows that of a guest's first process; there is nothing in it but settings of " +
		"drover-init's own",
	"read what only the machine's root may": rootsFilesLoose,
}

// tryDocker tries containers of the daemon that this machine has, with each runtime of ours that it knows. Their image is
// empty: the programs are the machine's, mounted read-only.
func tryDocker(
	ctx context.Context, dir, binary string, like trial.Config, network *bridge.Network, report func(program, state, says string),
) (err error) {
	clk := like.Clock
	// Without control groups the driver still works, and the trial says what is weaker.
	groups, err := cgroup.New(cgroup.Config{Parent: fmt.Sprintf("drover-doctor-docker-%d", os.Getpid())})
	if err != nil {
		groups = nil
	} else {
		defer func() { err = errors.Join(err, groups.Close(clk)) }()
	}
	d, err := docker.New(docker.Config{
		Owner: dir, Binary: binary, Cgroups: groups, Clock: clk, Log: slog.New(slog.DiscardHandler), AllowVolumes: true, ImageDelay: keepImages,
		Bridge: network,
	})
	if err != nil {
		report("docker", string(trial.NotTried), "no docker here: "+err.Error())
		return nil
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	info := d.Fingerprint(ctx)
	if !info.Healthy {
		report("docker", string(trial.NotTried), "no docker here: "+info.HealthDescription)
		return nil
	}
	root, volumes, err := machineRoot()
	if err != nil {
		return err
	}
	ref := fmt.Sprintf("drover-doctor:%d", os.Getpid())
	if err := d.Import(ctx, ref, root); err != nil {
		report("docker", string(trial.NotTried), err.Error())
		return nil
	}
	// Also after an interruption: nothing of ours stays in the daemon.
	defer func() { err = errors.Join(err, d.RemoveImage(context.WithoutCancel(ctx), ref)) }()
	for _, tier := range tiers {
		runtime := tier.runtime
		if !slices.Contains(strings.Split(info.Attributes["driver.docker.runtimes"], ","), runtime) {
			continue
		}
		own := filepath.Join(dir, runtime)
		if err := os.Mkdir(own, 0o755); err != nil { // as an agent's
			return err
		}
		var reach *trial.Network
		if tier.network {
			reach = like.Network
		}
		list, err := trial.Run(ctx, trial.Config{
			Network: reach,
			Driver:  d, Dir: own, Clock: clk, Group: containerOf, Loose: tier.loose, MemoryMB: tier.memoryMB,
			// Docker keeps the limits, by groups of its own: there are some, and none of ours can be left over.
			Groups: func() ([]string, error) { return nil, nil },
			Task:   map[string]any{"image": ref, "runtime": runtime, "network_mode": "none", "pids_limit": tier.pids, "volumes": volumes},
		})
		for _, f := range list {
			report("docker ("+runtime+"): "+f.Program, string(f.State), f.Says)
		}
		if err != nil {
			report("docker ("+runtime+")", string(trial.NotTried), err.Error())
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
	list := []*tar.Header{
		{Name: "usr/", Mode: 0o755},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "var/tmp/", Mode: 0o1777},
		{Name: "root/", Mode: 0o700},
		{Name: "mnt/", Mode: 0o755},
		{Name: "etc/", Mode: 0o755},
	}
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
