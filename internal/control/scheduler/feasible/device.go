package feasible

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover"
)

// Device reports whether a device group is what is asked for: "type", "vendor/type" or "vendor/type/name", and its
// attributes pass the constraints.
func (m *Matcher) Device(want *drover.RequestedDevice, d *drover.NodeDeviceResource) bool {
	ok := drover.DeviceNamed(want.Name, d.Vendor, d.Type, d.Name)
	for _, c := range want.Constraints {
		l, lok := resolveDevice(d, c.LTarget)
		r, rok := resolveDevice(d, c.RTarget)
		ok = ok && m.match(c.Operand, l, r, lok, rok)
	}
	return ok
}

// resolveDevice returns what ${device.…} says of a device group, or the text itself.
func resolveDevice(d *drover.NodeDeviceResource, target string) (string, bool) {
	name, isTarget := strings.CutPrefix(target, "${device.")
	if !isTarget || !strings.HasSuffix(name, "}") {
		return target, true
	}
	name = strings.TrimSuffix(name, "}")
	if key, isAttribute := strings.CutPrefix(name, "attr."); isAttribute {
		v, ok := d.Attributes[key]
		return fmt.Sprint(v), ok
	}
	switch name {
	case "vendor":
		return d.Vendor, true
	case "type":
		return d.Type, true
	case "model":
		return d.Name, true
	}
	return "", false
}

// hasDevices reports whether the node has a group of enough healthy devices for each request, used or not.
func (f *Filter) hasDevices(n *drover.Node) bool {
	for _, want := range f.devices {
		found := false
		for _, d := range Devices(n) {
			found = found || f.matcher.Device(want, d) && healthy(d) >= max(want.Count, 1)
		}
		if !found {
			return false
		}
	}
	return true
}

// Devices returns the node's groups of equal devices.
func Devices(n *drover.Node) []*drover.NodeDeviceResource {
	if n.NodeResources == nil {
		return nil
	}
	return n.NodeResources.Devices
}

// healthy counts the instances that may be given out.
func healthy(d *drover.NodeDeviceResource) uint64 {
	var n uint64
	for _, i := range d.Instances {
		if i.Healthy {
			n++
		}
	}
	return n
}
