package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/device"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/usage"
)

const (
	amd   = "amd"
	intel = "intel"
)

// pciVendors are the numbers in sysfs.
var pciVendors = map[string]string{amd: "0x1002", intel: "0x8086"}

// render finds the GPUs of a vendor by the render nodes that the kernel made for them. Its ids are their places on the PCI bus.
type render struct {
	maker Maker
	clock clock.Clock
	name  string // the vendor's

	mu    sync.Mutex // guards found
	found []renderNode
}

// renderNode is one of /sys/class/drm.
type renderNode struct {
	file string // "renderD128"
	id   string // place on the bus
	dir  string // of the PCI device in sysfs
}

func (r *render) vendor() string { return r.name }

// nodes lists the vendor's render nodes.
func (r *render) nodes() ([]renderNode, error) {
	entries, err := os.ReadDir(r.maker.path("sys/class/drm"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing render nodes: %w", err)
	}
	var out []renderNode
	for _, e := range entries {
		n := renderNode{file: e.Name(), dir: r.maker.path("sys/class/drm", e.Name(), "device")}
		if !strings.HasPrefix(n.file, "renderD") || n.read("vendor") != pciVendors[r.name] {
			continue
		}
		for line := range strings.Lines(n.read("uevent")) {
			if slot, ok := strings.CutPrefix(line, "PCI_SLOT_NAME="); ok {
				n.id = strings.TrimSpace(slot)
			}
		}
		if n.id != "" && !slices.Contains(r.maker.Ignored, n.id) {
			out = append(out, n)
		}
	}
	return out, nil
}

// read returns a file of the device in sysfs without the space around it, "" if it cannot be read.
func (n renderNode) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(n.dir, name))
	return strings.TrimSpace(string(data))
}

// number reads a file that holds one; false where there is none.
func (n renderNode) number(name string) (int64, bool) {
	v, err := strconv.ParseInt(n.read(name), 10, 64)
	return v, err == nil
}

// model is the product's name, where the driver has it, else its number.
func (n renderNode) model() string {
	return cmp.Or(strings.ReplaceAll(n.read("product_name"), "/", "-"), n.read("device"))
}

// discover describes each render node's GPU.
func (r *render) discover(context.Context) ([]*drover.NodeDeviceResource, error) {
	nodes, err := r.nodes()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.found = nodes
	r.mu.Unlock()
	var out []*drover.NodeDeviceResource
	for _, n := range nodes {
		health := ""
		if _, err := os.Stat(r.maker.path("dev/dri", n.file)); err != nil {
			health = "/dev/dri/" + n.file + " is not there"
		}
		out = append(out, &drover.NodeDeviceResource{
			Vendor: r.name, Type: "gpu", Name: n.model(), Attributes: n.attributes(),
			Instances: []*drover.NodeDevice{{ID: n.id, Healthy: health == "", HealthDescription: health}},
		})
	}
	return out, nil
}

// attributes have the names of NVIDIA's where they mean the same.
func (n renderNode) attributes() map[string]any {
	out := map[string]any{}
	for line := range strings.Lines(n.read("uevent")) {
		if name, ok := strings.CutPrefix(line, "DRIVER="); ok {
			out["driver"] = device.Text(strings.TrimSpace(name)).Record()
		}
	}
	if bytes, ok := n.number("mem_info_vram_total"); ok {
		out["memory"] = device.Int(bytes>>20, "MiB").Record()
	}
	if cards, _ := filepath.Glob(filepath.Join(n.dir, "drm/card*/gt_max_freq_mhz")); len(cards) > 0 {
		if v, ok := n.number(strings.TrimPrefix(cards[0], n.dir+"/")); ok {
			out["cores_clock"] = device.Int(v, "MHz").Record()
		}
	}
	if caps, _ := filepath.Glob(filepath.Join(n.dir, "hwmon/hwmon*/power1_cap")); len(caps) > 0 {
		if v, ok := n.number(strings.TrimPrefix(caps[0], n.dir+"/")); ok {
			out["power"] = device.Int(v/1_000_000, "W").Record() // it is in microwatts
		}
	}
	return out
}

// reserve returns the render nodes; AMD's compute goes through a file that all GPUs share.
func (r *render) reserve(ids []string) (driver.Devices, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := driver.Devices{}
	for _, id := range ids {
		i := slices.IndexFunc(r.found, func(n renderNode) bool { return n.id == id })
		if i < 0 {
			return driver.Devices{}, drover.Errorf(drover.NotFound, "device %s/gpu %s: it is not there any more", r.name, id)
		}
		file := "/dev/dri/" + r.found[i].file
		d.Nodes = append(d.Nodes, driver.DeviceNode{Source: r.maker.path(file), Target: file})
	}
	const compute = "/dev/kfd"
	if _, err := os.Stat(r.maker.path(compute)); err == nil && r.name == amd {
		d.Nodes = append(d.Nodes, driver.DeviceNode{Source: r.maker.path(compute), Target: compute, Shared: true})
	}
	return d, nil
}

// stats reads what the kernel counts: of AMD's how busy they are, and their memory.
func (r *render) stats(context.Context) ([]*usage.DeviceGroupStats, error) {
	nodes, err := r.nodes()
	if err != nil {
		return nil, err
	}
	byName := map[string]*usage.DeviceGroupStats{}
	for _, n := range nodes {
		values := map[string]*usage.StatValue{}
		if busy, ok := n.number("gpu_busy_percent"); ok {
			values["GPU utilization"] = &usage.StatValue{IntNumeratorVal: &busy, Unit: "%"}
		}
		used, ok := n.number("mem_info_vram_used")
		total, also := n.number("mem_info_vram_total")
		if ok && also {
			used, total = used>>20, total>>20
			values["Memory state"] = &usage.StatValue{
				IntNumeratorVal: &used, IntDenominatorVal: &total, Unit: "MiB", Desc: "used of all memory",
			}
		}
		if len(values) == 0 {
			continue
		}
		model := n.model()
		if byName[model] == nil {
			byName[model] = &usage.DeviceGroupStats{
				Vendor: r.name, Type: "gpu", Name: model, InstanceStats: map[string]*usage.DeviceStats{},
			}
		}
		byName[model].InstanceStats[n.id] = &usage.DeviceStats{
			Summary: cmp.Or(values["Memory state"], values["GPU utilization"]), Stats: &usage.StatObject{Attributes: values},
			Timestamp: r.clock.Now(),
		}
	}
	return inOrder(byName), nil
}

// inOrder lists the groups by their names.
func inOrder(byName map[string]*usage.DeviceGroupStats) (out []*usage.DeviceGroupStats) {
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}
