package feasible

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/device"
)

// Device reports whether a device group is what is asked for: "type", "vendor/type" or "vendor/type/name", and its
// attributes pass the constraints.
func (m *Matcher) Device(want *drover.RequestedDevice, d *drover.NodeDeviceResource) bool {
	return device.Named(want.Name, d.Vendor, d.Type, d.Name) && m.unmet(want, d) == nil
}

// unmet returns the first constraint that a device group does not meet, nil if it meets all.
func (m *Matcher) unmet(want *drover.RequestedDevice, d *drover.NodeDeviceResource) *constraint.Constraint {
	for _, c := range want.Constraints {
		if !m.meets(d, c.LTarget, c.Operand, c.RTarget) {
			return c
		}
	}
	return nil
}

// LikedDevice returns how much a device group is liked: the weights of the affinities that match over all weights, from -1 to 1.
func (m *Matcher) LikedDevice(want *drover.RequestedDevice, d *drover.NodeDeviceResource) float64 {
	got, all := 0.0, 0.0
	for _, a := range want.Affinities {
		all += math.Abs(float64(a.Weight))
		if m.meets(d, a.LTarget, a.Operand, a.RTarget) {
			got += float64(a.Weight)
		}
	}
	if all == 0 {
		return 0
	}
	return got / all
}

// meets decides an operand on a device group. Numbers are compared with their units; what has none is not comparable with what has
// one. Everything else is decided as of nodes, by the texts.
func (m *Matcher) meets(d *drover.NodeDeviceResource, left, operand, right string) bool {
	l, lok := resolveDevice(d, left)
	r, rok := resolveDevice(d, right)
	switch operand {
	case "=", "==", "is", "", "!=", "not", "<", "<=", ">", ">=":
		if !lok || !rok {
			break
		}
		order, ok := l.Compare(r)
		switch {
		case ok:
			operand = cmp.Or(map[string]string{"is": "=", "not": "!="}[operand], operand)
			return ordered(operand, order)
		case l.String == nil && r.String == nil && l.Bool == nil && r.Bool == nil:
			return operand == "!=" || operand == "not"
		}
	}
	return m.match(operand, l.Text(), r.Text(), lok, rok)
}

// resolveDevice returns what ${device.…} says of a device group, or what the text itself means.
func resolveDevice(d *drover.NodeDeviceResource, target string) (device.Attribute, bool) {
	name, isTarget := strings.CutPrefix(target, "${device.")
	if !isTarget || !strings.HasSuffix(name, "}") {
		return device.Parse(target), true
	}
	name = strings.TrimSuffix(name, "}")
	if key, isAttribute := strings.CutPrefix(name, "attr."); isAttribute {
		return d.Attribute(key)
	}
	switch name {
	case "vendor":
		return device.Text(d.Vendor), true
	case "type":
		return device.Text(d.Type), true
	case "model":
		return device.Text(d.Name), true
	case "ids":
		var ids []string
		for _, i := range d.Instances {
			ids = append(ids, i.ID)
		}
		return device.Text(strings.Join(ids, ",")), true
	}
	return device.Attribute{}, false
}

// missingDevices says which request no group of the node has enough healthy devices for, used or not, and why; "" if there is none.
func (f *Filter) missingDevices(n *drover.Node) string {
	for _, want := range f.devices {
		if why, found := f.findDevice(n, want); !found {
			return "missing devices: " + why
		}
	}
	return ""
}

// findDevice reports whether a group of the node has enough healthy devices for a request. If none has, it says what comes nearest.
func (f *Filter) findDevice(n *drover.Node, want *drover.RequestedDevice) (why string, found bool) {
	why = want.Name
	for _, d := range Devices(n) {
		if !device.Named(want.Name, d.Vendor, d.Type, d.Name) {
			continue
		}
		if c := f.matcher.unmet(want, d); c != nil {
			why = fmt.Sprintf("%s with %s", want.Name, constraintText(c))
			if has, ok := resolveDevice(d, c.LTarget); ok {
				why += fmt.Sprintf(" (it is %s of %s)", has.Text(), d.Name)
			}
			continue
		}
		well := healthy(d)
		if well >= max(want.Count, 1) {
			return "", true
		}
		why = fmt.Sprintf("%d of %s (%d of %d %s are healthy)", max(want.Count, 1), want.Name, well, len(d.Instances), d.Name)
	}
	return why, false
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
