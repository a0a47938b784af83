package drover

import "github.com/drover-project/drover/device"

// Attribute returns what the group says of itself under the name.
func (d *NodeDeviceResource) Attribute(name string) (device.Attribute, bool) {
	v, ok := d.Attributes[name]
	m, isRecord := v.(map[string]any)
	if !isRecord {
		return device.Scalar(v), ok
	}
	var a device.Attribute
	for _, key := range []string{"Float", "Int", "String", "Bool"} {
		if value := m[key]; value != nil {
			a = device.Scalar(value)
		}
	}
	a.Unit, _ = m["Unit"].(string)
	return a, ok
}
