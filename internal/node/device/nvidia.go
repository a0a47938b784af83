package device

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
)

const nvidiaVendor = "nvidia"

// visibleDevices is read by NVIDIA's container runtime.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

// nvidia finds GPUs by the files of NVIDIA's kernel driver. What they can do nvidia-smi tells; without that program only what the
// files say is known.
type nvidia struct {
	maker Maker
	tool  tool

	mu   sync.Mutex        // guards what follows
	told map[string]smiGPU // what the tool said last, by address on the bus
	gpus map[string]int    // minor numbers of device files, by id
}

func newNVIDIA(m Maker, c clock.Clock) *nvidia {
	path := cmp.Or(m.Tool, "nvidia-smi")
	return &nvidia{maker: m, tool: tool{argv: []string{path, "-q", "-x"}, clock: c}, told: map[string]smiGPU{}}
}

func (n *nvidia) vendor() string { return nvidiaVendor }

// gpu is one as the kernel driver's files describe it.
type gpu struct {
	bus, model, id string
	minor          int
	excluded       bool
}

// discover reads the kernel driver's files, and asks the tool about the rest.
func (n *nvidia) discover(ctx context.Context) ([]*drover.NodeDeviceResource, error) {
	gpus, err := n.listed()
	if err != nil || len(gpus) == 0 {
		return nil, err
	}
	log, err := n.ask(ctx)
	noTool := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		clear(n.told)
		for _, g := range log.GPUs {
			n.told[address(g.Bus)] = g
		}
	}
	minors := map[string]int{}
	var groups []*drover.NodeDeviceResource
	for _, g := range gpus {
		said, known := n.told[g.bus]
		id := g.id
		if known && said.UUID != "" { // the file has it only after somebody has used the device
			id = said.UUID
		}
		if g.excluded || slices.Contains(n.maker.Ignored, id) {
			continue
		}
		minors[id] = g.minor
		health := ""
		switch {
		case err != nil && !noTool:
			health = err.Error()
		case err == nil && !known:
			health = "nvidia-smi does not list it"
		case said.MIG.Current == "Enabled":
			health = "it is divided (MIG), and its parts are not offered"
		case strings.Contains(id, "?"):
			health = "its id is not known before somebody uses it; nvidia-smi knows it"
		default:
			health = n.missingFile(g.minor)
		}
		groups = append(groups, &drover.NodeDeviceResource{
			Vendor: nvidiaVendor, Type: "gpu", Name: cmp.Or(said.Name, g.model),
			Instances:  []*drover.NodeDevice{{ID: id, Healthy: health == "", HealthDescription: health}},
			Attributes: said.attributes(cmp.Or(n.driverVersion(), said.driver)),
		})
	}
	n.gpus = minors
	return groups, nil
}

// ask runs the tool.
func (n *nvidia) ask(ctx context.Context) (*smiLog, error) {
	out, err := n.tool.ask(ctx)
	if err != nil {
		return nil, err
	}
	return parseSMI(out)
}

// path is a path below the root.
func (n *nvidia) path(parts ...string) string { return n.maker.path(parts...) }

// path is a path below the root that is looked at.
func (m Maker) path(parts ...string) string {
	return filepath.Join(append([]string{cmp.Or(m.Root, "/")}, parts...)...)
}

// listed reads what the kernel driver lists; nothing if it is not loaded.
func (n *nvidia) listed() ([]gpu, error) {
	dir := n.path("proc/driver/nvidia/gpus")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing NVIDIA's devices: %w", err)
	}
	var out []gpu
	for _, e := range entries {
		g, err := readGPU(filepath.Join(dir, e.Name(), "information"))
		if err != nil {
			continue // it went away just now
		}
		g.bus = address(e.Name())
		out = append(out, g)
	}
	return out, nil
}

// readGPU reads lines such as "GPU UUID: 	 GPU-8a3f…".
func readGPU(path string) (gpu, error) {
	g := gpu{minor: -1}
	f, err := os.Open(path)
	if err != nil {
		return g, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			g.model = value
		case "GPU UUID":
			g.id = value
		case "Device Minor":
			if _, err := fmt.Sscanf(value, "%d", &g.minor); err != nil {
				g.minor = -1
			}
		case "GPU Excluded":
			g.excluded = value == "Yes"
		}
	}
	return g, nil
}

// address is a place on the PCI bus in one form: the files write 0000:00:1e.0, and the tool 00000000:00:1E.0.
func address(text string) string {
	text = strings.ToLower(text)
	return text[max(0, len(text)-len("0000:00:00.0")):]
}

// missingFile says that the device file is not there; "" if it is.
func (n *nvidia) missingFile(minor int) string {
	if minor < 0 {
		return "the driver does not say which device file is its"
	}
	file := fmt.Sprintf("/dev/nvidia%d", minor)
	if _, err := os.Stat(n.path(file)); err != nil {
		return file + " is not there: load the driver's modules, or start nvidia-persistenced"
	}
	return ""
}

// driverVersion reads the version out of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …".
func (n *nvidia) driverVersion() string {
	data, _ := os.ReadFile(n.path("proc/driver/nvidia/version"))
	first, _, _ := strings.Cut(string(data), "\n")
	for _, word := range strings.Fields(first) {
		if strings.Count(word, ".") > 0 && strings.Trim(word, "0123456789.") == "" {
			return word
		}
	}
	return ""
}

// reserve returns the device files of the GPUs and those that all of them share, and the libraries of the driver.
func (n *nvidia) reserve(ids []string) (driver.Devices, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := strings.Join(ids, ",")
	d := driver.Devices{
		Runtime: "nvidia", LibraryPath: libraryPath,
		Env: map[string]string{visibleDevices: list, "CUDA_VISIBLE_DEVICES": list}, // the latter for CUDA itself
	}
	for _, id := range ids {
		minor, ok := n.gpus[id]
		if !ok {
			return driver.Devices{}, drover.Errorf(drover.NotFound, "device nvidia/gpu %s: it is not there any more", id)
		}
		file := fmt.Sprintf("/dev/nvidia%d", minor)
		d.Nodes = append(d.Nodes, driver.DeviceNode{Source: n.path(file), Target: file})
	}
	for _, file := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"} {
		if _, err := os.Stat(n.path(file)); err == nil {
			d.Nodes = append(d.Nodes, driver.DeviceNode{Source: n.path(file), Target: file, Shared: true})
		}
	}
	d.Libraries = n.libraries()
	return d, nil
}

// libraryPath is where programs find the driver's libraries in a root of their own: NVIDIA's images have it in LD_LIBRARY_PATH.
const libraryPath = "/usr/local/nvidia/lib64"

// libraries are those of the driver that programs load by name, under each of the names.
func (n *nvidia) libraries() (out []driver.Mount) {
	seen := map[string]bool{}
	for _, dir := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/lib/wsl/lib"} {
		for _, pattern := range []string{"libcuda.so*", "libnvidia-*.so*", "libnvcuvid.so*", "libcudadebugger.so*"} {
			files, _ := filepath.Glob(n.path(dir, pattern)) // its only error is one of the pattern
			for _, file := range files {
				name := filepath.Base(file)
				source, err := filepath.EvalSymlinks(file)
				if err != nil || seen[name] || strings.Contains(name, "-gl") || strings.Contains(name, "-gtk") {
					continue
				}
				seen[name] = true
				out = append(out, driver.Mount{Source: source, Target: libraryPath + "/" + name, ReadOnly: true})
			}
		}
	}
	return out
}
