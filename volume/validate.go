package volume

import (
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/validation"
)

// Bounds of a volume's request, in bytes.
const (
	maxVolumeParameters = 64 << 10
	maxVolumePath       = 4096
)

// isVolumeName reports whether a volume can be called so. Brackets are those of per_alloc. It is no regular expression, as
// each supervisor would compile that when it starts.
func isVolumeName(s string) bool {
	if name, index, found := strings.Cut(s, "["); found {
		index, closed := strings.CutSuffix(index, "]")
		if !closed || index == "" || len(index) > 6 || strings.Trim(index, validation.Digits) != "" {
			return false
		}
		s = name
	}
	return s != "" && len(s) <= 128 && strings.ContainsAny(s[:1], validation.Letters+validation.Digits) &&
		strings.Trim(s, validation.Letters+validation.Digits+"_.-") == ""
}

// Complete sets the defaults of a volume that is asked for.
func (v *HostVolume) Complete() {
	if v.Namespace == "" {
		v.Namespace = drover.DefaultNamespace
	}
	if v.PluginID == "" && !v.Registered {
		v.PluginID = DefaultVolumePlugin
	}
	if len(v.RequestedCapabilities) == 0 {
		v.RequestedCapabilities = []*HostVolumeCapability{{AttachmentMode: drover.AttachFileSystem, AccessMode: drover.AccessWriter}}
	}
	for _, c := range v.RequestedCapabilities {
		if c != nil && c.AttachmentMode == "" {
			c.AttachmentMode = drover.AttachFileSystem
		}
		if c != nil && c.AccessMode == "" {
			c.AccessMode = drover.AccessWriter
		}
	}
	constraint.Canonicalize(v.Constraints)
}

// Validate reports everything that is wrong with a complete volume that is asked for, but for its ID, as one Invalid error.
func (v *HostVolume) Validate() error {
	r := &validation.Report{}
	r.Check(v.Name != "", "Name", "missing name: must be set")
	r.Check(v.Name == "" || isVolumeName(v.Name), "Name",
		"must be 1 to 128 letters, digits, '-', '_' or '.', and may end in an index such as [0], got %q", v.Name)
	minimum, maximum := v.RequestedCapacityMinBytes, v.RequestedCapacityMaxBytes
	r.Check(minimum >= 0, "RequestedCapacityMinBytes", "must not be negative, got %d", minimum)
	r.Check(maximum >= 0, "RequestedCapacityMaxBytes", "must not be negative, got %d", maximum)
	r.Check(maximum <= 0 || minimum <= maximum, "RequestedCapacityMaxBytes",
		"capacity_max (%d) must not be smaller than capacity_min (%d)", maximum, minimum)
	v.validateModes(r)
	constraint.Validate(r, "Constraints", v.Constraints)
	for _, c := range v.Constraints {
		r.Check(c == nil || !strings.HasPrefix(c.Operand, "distinct_"), "Constraints", "distinct_hosts and distinct_property are of jobs")
	}
	size := 0
	for k, p := range v.Parameters {
		size += len(k) + len(p)
	}
	r.Check(size <= maxVolumeParameters, "Parameters", "must have at most %d bytes together, got %d", maxVolumeParameters, size)
	if v.Registered {
		r.Check(v.NodeID != "", "NodeID", "must be set: it says where the folder is")
		r.Check(strings.HasPrefix(v.HostPath, "/") && len(v.HostPath) <= maxVolumePath && validation.Readable(v.HostPath), "HostPath",
			"must be an absolute path on the node, got %q", v.HostPath)
		r.Check(!strings.Contains(v.HostPath+"/", "/../"), "HostPath", `must not have ".." in it, got %q`, v.HostPath)
	}
	if err := r.Err(); err != nil {
		return drover.Errorf(drover.Invalid, "volume validation: %w", err)
	}
	return nil
}

// validateModes checks the ways in which the volume may be mounted.
func (v *HostVolume) validateModes(r *validation.Report) {
	modes := drover.AccessModes()
	for _, c := range v.RequestedCapabilities {
		if c == nil {
			r.Addf("RequestedCapabilities", "must not be null")
			continue
		}
		r.Check(c.AttachmentMode != drover.AttachBlockDevice, "RequestedCapabilities.AttachmentMode",
			"block-device is not supported: use file-system")
		r.Check(c.AttachmentMode == drover.AttachFileSystem || c.AttachmentMode == drover.AttachBlockDevice,
			"RequestedCapabilities.AttachmentMode", "must be file-system, got %q", c.AttachmentMode)
		r.Check(slices.Contains(modes, c.AccessMode), "RequestedCapabilities.AccessMode",
			"must be one of %s, got %q", strings.Join(modes, ", "), c.AccessMode)
	}
	r.Check(len(v.RequestedCapabilities) <= len(modes), "RequestedCapabilities", "at most %d of them, got %d",
		len(modes), len(v.RequestedCapabilities))
}
