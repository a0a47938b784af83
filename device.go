package drover

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// DeviceAttribute is a property of a group of devices, or what a constraint compares it with: one of the four, numbers with their unit.
type DeviceAttribute struct {
	Float  *float64 `json:",omitempty"`
	Int    *int64   `json:",omitempty"`
	String *string  `json:",omitempty"`
	Bool   *bool    `json:",omitempty"`
	Unit   string   // "MiB", "W"; "" = none
}

// DeviceInt is a whole number with its unit.
func DeviceInt(n int64, unit string) DeviceAttribute { return DeviceAttribute{Int: &n, Unit: unit} }

// DeviceText is an attribute without a number.
func DeviceText(s string) DeviceAttribute { return DeviceAttribute{String: &s} }

// Record is how a group of devices holds an attribute (NodeDeviceResource.Attributes): Nomad's shape.
func (a DeviceAttribute) Record() map[string]any {
	m := map[string]any{"Unit": a.Unit}
	switch {
	case a.Float != nil:
		m["Float"] = *a.Float
	case a.Int != nil:
		m["Int"] = *a.Int
	case a.String != nil:
		m["String"] = *a.String
	case a.Bool != nil:
		m["Bool"] = *a.Bool
	}
	return m
}

// Text is how people write the attribute: "15360 MiB".
func (a DeviceAttribute) Text() string {
	text := ""
	switch {
	case a.Float != nil:
		text = strconv.FormatFloat(*a.Float, 'f', -1, 64)
	case a.Int != nil:
		text = strconv.FormatInt(*a.Int, 10)
	case a.Bool != nil:
		text = strconv.FormatBool(*a.Bool)
	case a.String != nil:
		text = *a.String
	}
	if a.Unit != "" {
		text += " " + a.Unit
	}
	return text
}

// Attribute returns what the group says of itself under the name.
func (d *NodeDeviceResource) Attribute(name string) (DeviceAttribute, bool) {
	v, ok := d.Attributes[name]
	m, isRecord := v.(map[string]any)
	if !isRecord {
		return deviceScalar(v), ok
	}
	var a DeviceAttribute
	for _, key := range []string{"Float", "Int", "String", "Bool"} {
		if value := m[key]; value != nil {
			a = deviceScalar(value)
		}
	}
	a.Unit, _ = m["Unit"].(string)
	return a, ok
}

// deviceScalar reads a value as decoders leave it: the same number has several types, depending on the way it came.
func deviceScalar(v any) DeviceAttribute {
	switch v := v.(type) {
	case string:
		return DeviceText(v)
	case bool:
		return DeviceAttribute{Bool: &v}
	case float64:
		return DeviceAttribute{Float: &v}
	}
	text := fmt.Sprint(v)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return DeviceInt(n, "")
	}
	return DeviceText(text)
}

// ParseDeviceAttribute reads what a constraint compares an attribute with: a number with or without a unit ("4 GiB", "250W"), true,
// false, or any text.
func ParseDeviceAttribute(text string) DeviceAttribute {
	text = strings.TrimSpace(text)
	if text == "true" || text == "false" {
		b := text == "true"
		return DeviceAttribute{Bool: &b}
	}
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, unit := text[:end], strings.TrimSpace(text[end:])
	if _, known := unitOf(unit); !known && unit != "" {
		return DeviceText(text)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return DeviceInt(n, unit)
	}
	if f, err := strconv.ParseFloat(number, 64); err == nil {
		return DeviceAttribute{Float: &f, Unit: unit}
	}
	return DeviceText(text)
}

// Compare orders two attributes. It reports false where they can't be compared: numbers of different kinds of units, a number with
// a unit and one without, and values of different types.
func (a DeviceAttribute) Compare(b DeviceAttribute) (order int, ok bool) {
	switch {
	case a.Int != nil && b.Int != nil && a.Unit == b.Unit:
		return cmp.Compare(*a.Int, *b.Int), true
	case a.String != nil && b.String != nil:
		return strings.Compare(*a.String, *b.String), true
	case a.Bool != nil && b.Bool != nil:
		return strings.Compare(a.Text(), b.Text()), true
	}
	x, xok := a.number()
	y, yok := b.number()
	of, _ := unitOf(a.Unit)
	to, _ := unitOf(b.Unit)
	if !xok || !yok || a.Unit != b.Unit && (of.base != to.base || of.base == "") {
		return 0, false
	}
	if a.Unit != b.Unit {
		x, y = x*of.factor, y*to.factor
	}
	return cmp.Compare(x, y), true
}

// number is the attribute's number in its unit.
func (a DeviceAttribute) number() (float64, bool) {
	switch {
	case a.Float != nil:
		return *a.Float, true
	case a.Int != nil:
		return float64(*a.Int), true
	}
	return 0, false
}

// deviceUnit is a unit as a multiple of the base of its kind.
type deviceUnit struct {
	base   string
	factor float64
}

// unitOf returns one of the units that Nomad's attributes have. It is no table, which supervisors would make at each start.
func unitOf(name string) (u deviceUnit, known bool) {
	switch name {
	case "MHz":
		return deviceUnit{"Hz", 1e6}, true
	case "GHz":
		return deviceUnit{"Hz", 1e9}, true
	case "mW":
		return deviceUnit{"W", 1e-3}, true
	case "W":
		return deviceUnit{"W", 1}, true
	case "kW":
		return deviceUnit{"W", 1e3}, true
	case "MW":
		return deviceUnit{"W", 1e6}, true
	case "GW":
		return deviceUnit{"W", 1e9}, true
	}
	base, step := "B", 1000.0
	prefix, rate := strings.CutSuffix(name, "/s")
	if rate {
		base = "B/s"
	}
	prefix, bytes := strings.CutSuffix(prefix, "B")
	prefix, binary := strings.CutSuffix(prefix, "i")
	if binary {
		step = 1024
	}
	if !binary && prefix == "k" {
		prefix = "K"
	}
	power := strings.Index("KMGTPE", prefix)
	if !bytes || len(prefix) != 1 || power < 0 {
		return deviceUnit{}, false
	}
	u = deviceUnit{base, 1}
	for range power + 1 {
		u.factor *= step
	}
	return u, true
}
