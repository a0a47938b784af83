package device

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Attribute is a property of a group of devices, or what a constraint compares it with: one of the four, numbers with their unit.
type Attribute struct {
	Float  *float64 `json:",omitempty"`
	Int    *int64   `json:",omitempty"`
	String *string  `json:",omitempty"`
	Bool   *bool    `json:",omitempty"`
	Unit   string   // "MiB", "W"; "" = none
}

// Int is a whole number with its unit.
func Int(n int64, unit string) Attribute { return Attribute{Int: &n, Unit: unit} }

// Text is an attribute without a number.
func Text(s string) Attribute { return Attribute{String: &s} }

// Record is how a group of devices holds an attribute (NodeDeviceResource.Attributes): Nomad's shape.
func (a Attribute) Record() map[string]any {
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
func (a Attribute) Text() string {
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

// Scalar reads a value as decoders leave it: the same number has several types, depending on the way it came.
func Scalar(v any) Attribute {
	switch v := v.(type) {
	case string:
		return Text(v)
	case bool:
		return Attribute{Bool: &v}
	case float64:
		return Attribute{Float: &v}
	}
	text := fmt.Sprint(v)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(n, "")
	}
	return Text(text)
}

// Parse reads what a constraint compares an attribute with: a number with or without a unit ("4 GiB", "250W"), true,
// false, or any text.
func Parse(text string) Attribute {
	text = strings.TrimSpace(text)
	if text == "true" || text == "false" {
		b := text == "true"
		return Attribute{Bool: &b}
	}
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, unit := text[:end], strings.TrimSpace(text[end:])
	if _, known := unitOf(unit); !known && unit != "" {
		return Text(text)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return Int(n, unit)
	}
	if f, err := strconv.ParseFloat(number, 64); err == nil {
		return Attribute{Float: &f, Unit: unit}
	}
	return Text(text)
}

// Compare orders two attributes. It reports false where they can't be compared: numbers of different kinds of units, a number with
// a unit and one without, and values of different types.
func (a Attribute) Compare(b Attribute) (order int, ok bool) {
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
func (a Attribute) number() (float64, bool) {
	switch {
	case a.Float != nil:
		return *a.Float, true
	case a.Int != nil:
		return float64(*a.Int), true
	}
	return 0, false
}

// unit is a unit as a multiple of the base of its kind.
type unit struct {
	base   string
	factor float64
}

// unitOf returns one of the units that Nomad's attributes have. It is no table, which supervisors would make at each start.
func unitOf(name string) (u unit, known bool) {
	switch name {
	case "MHz":
		return unit{"Hz", 1e6}, true
	case "GHz":
		return unit{"Hz", 1e9}, true
	case "mW":
		return unit{"W", 1e-3}, true
	case "W":
		return unit{"W", 1}, true
	case "kW":
		return unit{"W", 1e3}, true
	case "MW":
		return unit{"W", 1e6}, true
	case "GW":
		return unit{"W", 1e9}, true
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
		return unit{}, false
	}
	u = unit{base, 1}
	for range power + 1 {
		u.factor *= step
	}
	return u, true
}

// Named reports whether a name stands for a device: "type", "vendor/type" or "vendor/type/name".
func Named(name, vendor, kind, model string) bool {
	return name == kind || name == vendor+"/"+kind || name == vendor+"/"+kind+"/"+model
}
