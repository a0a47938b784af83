package volume

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/volume"
)

//go:embed example.volume.hcl
var example string

// file is a volume's file, with Nomad's keys.
type file struct {
	ID           string           `hcl:"id,optional"`
	Namespace    string           `hcl:"namespace,optional"`
	Name         string           `hcl:"name"`
	Type         string           `hcl:"type,optional"`
	PluginID     string           `hcl:"plugin_id,optional"`
	NodeID       string           `hcl:"node_id,optional"`
	NodePool     string           `hcl:"node_pool,optional"`
	HostPath     string           `hcl:"host_path,optional"`
	Capacity     string           `hcl:"capacity,optional"`
	CapacityMin  string           `hcl:"capacity_min,optional"`
	CapacityMax  string           `hcl:"capacity_max,optional"`
	Capabilities []capabilityFile `hcl:"capability,block"`
	Constraints  []constraintFile `hcl:"constraint,block"`
	Parameters   *term.Free       `hcl:"parameters,block"`
}

type capabilityFile struct {
	AccessMode     string `hcl:"access_mode,optional"`
	AttachmentMode string `hcl:"attachment_mode,optional"`
}

type constraintFile struct {
	Attribute      string `hcl:"attribute,optional"`
	Operator       string `hcl:"operator,optional"`
	Value          string `hcl:"value,optional"`
	Version        string `hcl:"version,optional"`
	Semver         string `hcl:"semver,optional"`
	Regexp         string `hcl:"regexp,optional"`
	SetContains    string `hcl:"set_contains,optional"`
	SetContainsAll string `hcl:"set_contains_all,optional"`
	SetContainsAny string `hcl:"set_contains_any,optional"`
}

// constraint is the constraint of the file. A key of an operator's name is both the operator and the value.
func (c constraintFile) constraint() *constraint.Constraint {
	out := &constraint.Constraint{LTarget: c.Attribute, Operand: c.Operator, RTarget: c.Value}
	for _, short := range []struct{ operand, value string }{
		{"version", c.Version},
		{"semver", c.Semver},
		{"regexp", c.Regexp},
		{"set_contains", c.SetContains},
		{"set_contains_all", c.SetContainsAll},
		{"set_contains_any", c.SetContainsAny},
	} {
		if short.value != "" {
			out.Operand, out.RTarget = short.operand, short.value
		}
	}
	return out
}

// parse reads a volume's file in HCL or in HCL's JSON, or the JSON of the API. Errors: Invalid, with line and column.
func parse(text []byte, name string) (*volume.HostVolume, error) {
	asJSON := bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
	var keys map[string]json.RawMessage
	if asJSON && json.Unmarshal(text, &keys) == nil && keys["Name"] != nil {
		v := &volume.HostVolume{}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			return nil, drover.Errorf(drover.Invalid, "%s: %w", name, err)
		}
		return v, nil
	}
	read := hclparse.NewParser().ParseJSON
	if !asJSON {
		read = hclparse.NewParser().ParseHCL
		text = literal(text)
	}
	parsed, diags := read(text, name)
	var f file
	if !diags.HasErrors() {
		diags = gohcl.DecodeBody(parsed.Body, nil, &f)
	}
	parameters, more := f.Parameters.Values(nil)
	if err := diagnosed(append(diags, more...)); err != nil {
		return nil, err
	}
	return f.volume(parameters)
}

// interpolation is what stands for something of the node, and not of the file.
var interpolation = regexp.MustCompile(`\$*\$\{`)

// literal has ${…} stand for itself: in volume files nothing is replaced.
func literal(text []byte) []byte {
	return interpolation.ReplaceAllFunc(text, func(found []byte) []byte {
		if len(found) > len("${") {
			return found
		}
		return []byte("$${")
	})
}

func (f *file) volume(parameters map[string]string) (*volume.HostVolume, error) {
	if f.Type != "host" {
		return nil, drover.Errorf(drover.Invalid, `type: must be "host", got %q: there are no other volumes here`, f.Type)
	}
	v := &volume.HostVolume{
		ID: f.ID, Namespace: f.Namespace, Name: f.Name, PluginID: f.PluginID, NodeID: f.NodeID, NodePool: f.NodePool, HostPath: f.HostPath,
		Parameters: parameters,
	}
	for _, c := range []struct {
		key, text string
		to        *int64
	}{
		{"capacity", f.Capacity, &v.CapacityBytes},
		{"capacity_min", f.CapacityMin, &v.RequestedCapacityMinBytes},
		{"capacity_max", f.CapacityMax, &v.RequestedCapacityMaxBytes},
	} {
		if c.text == "" {
			continue
		}
		n, ok := size(c.text)
		if !ok {
			return nil, drover.Errorf(drover.Invalid, "%s: must be a number of bytes, or with a unit such as 10GiB or 10GB, got %q", c.key, c.text)
		}
		*c.to = n
	}
	for _, c := range f.Capabilities {
		v.RequestedCapabilities = append(v.RequestedCapabilities, &volume.HostVolumeCapability{
			AccessMode: c.AccessMode, AttachmentMode: c.AttachmentMode,
		})
	}
	for _, c := range f.Constraints {
		v.Constraints = append(v.Constraints, c.constraint())
	}
	return v, nil
}

// units are those of sizes, in lower case: those with an i are powers of 1024.
var units = map[string]float64{
	"": 1, "b": 1, "k": 1e3, "kb": 1e3, "ki": 1 << 10, "kib": 1 << 10, "m": 1e6, "mb": 1e6, "mi": 1 << 20, "mib": 1 << 20,
	"g": 1e9, "gb": 1e9, "gi": 1 << 30, "gib": 1 << 30, "t": 1e12, "tb": 1e12, "ti": 1 << 40, "tib": 1 << 40,
	"p": 1e15, "pb": 1e15, "pi": 1 << 50, "pib": 1 << 50,
}

// size reads a number of bytes.
func size(text string) (int64, bool) {
	at := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := units[strings.ToLower(strings.TrimSpace(text[at:]))]
	n, err := strconv.ParseFloat(text[:at], 64)
	if bytes := n * unit; known && err == nil && bytes >= 0 && bytes < math.MaxInt64 {
		return int64(bytes), true
	}
	return 0, false
}

// diagnosed makes an error of all that is wrong.
func diagnosed(diags hcl.Diagnostics) error {
	var lines []string
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			lines = append(lines, d.Error())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "%s", strings.Join(lines, "; "))
}
