package drover

import (
	"slices"
	"strings"
)

// Bounds of a volume's request, in bytes.
const (
	maxVolumeParameters = 64 << 10
	maxVolumePath       = 4096
)

// accessModes are those of host volumes.
var accessModes = []string{AccessReader, AccessWriter, AccessSingleWriter, AccessMultiWriter}

// What names are made of.
const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isVolumeName reports whether a volume can be called so. Brackets are those of per_alloc. It is no regular expression, for the reason
// that isPlainName gives.
func isVolumeName(s string) bool {
	if name, index, found := strings.Cut(s, "["); found {
		index, closed := strings.CutSuffix(index, "]")
		if !closed || index == "" || len(index) > 6 || strings.Trim(index, digits) != "" {
			return false
		}
		s = name
	}
	return s != "" && len(s) <= 128 && strings.ContainsAny(s[:1], letters+digits) && strings.Trim(s, letters+digits+"_.-") == ""
}

// Complete sets the defaults of a volume that is asked for.
func (v *HostVolume) Complete() {
	if v.Namespace == "" {
		v.Namespace = DefaultNamespace
	}
	if v.PluginID == "" && !v.Registered {
		v.PluginID = DefaultVolumePlugin
	}
	if len(v.RequestedCapabilities) == 0 {
		v.RequestedCapabilities = []*HostVolumeCapability{{AttachmentMode: AttachFileSystem, AccessMode: AccessWriter}}
	}
	for _, c := range v.RequestedCapabilities {
		if c != nil && c.AttachmentMode == "" {
			c.AttachmentMode = AttachFileSystem
		}
		if c != nil && c.AccessMode == "" {
			c.AccessMode = AccessWriter
		}
	}
	canonicalizeConstraints(v.Constraints)
}

// Validate reports everything that is wrong with a complete volume that is asked for, but for its ID, as one Invalid error.
func (v *HostVolume) Validate() error {
	r := &report{}
	r.Check(v.Name != "", "Name", "missing name: must be set")
	r.Check(v.Name == "" || isVolumeName(v.Name), "Name",
		"must be 1 to 128 letters, digits, '-', '_' or '.', and may end in an index such as [0], got %q", v.Name)
	minimum, maximum := v.RequestedCapacityMinBytes, v.RequestedCapacityMaxBytes
	r.Check(minimum >= 0, "RequestedCapacityMinBytes", "must not be negative, got %d", minimum)
	r.Check(maximum >= 0, "RequestedCapacityMaxBytes", "must not be negative, got %d", maximum)
	r.Check(maximum <= 0 || minimum <= maximum, "RequestedCapacityMaxBytes",
		"capacity_max (%d) must not be smaller than capacity_min (%d)", maximum, minimum)
	v.validateModes(r)
	validateConstraints(r, "Constraints", v.Constraints)
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
		r.Check(strings.HasPrefix(v.HostPath, "/") && len(v.HostPath) <= maxVolumePath && readable(v.HostPath), "HostPath",
			"must be an absolute path on the node, got %q", v.HostPath)
		r.Check(!strings.Contains(v.HostPath+"/", "/../"), "HostPath", `must not have ".." in it, got %q`, v.HostPath)
	}
	if err := r.Err(); err != nil {
		return Errorf(Invalid, "volume validation: %w", err)
	}
	return nil
}

// validateModes checks the ways in which the volume may be mounted.
func (v *HostVolume) validateModes(r *report) {
	for _, c := range v.RequestedCapabilities {
		if c == nil {
			r.Addf("RequestedCapabilities", "must not be null")
			continue
		}
		r.Check(c.AttachmentMode != AttachBlockDevice, "RequestedCapabilities.AttachmentMode", "block-device is not supported: use file-system")
		r.Check(c.AttachmentMode == AttachFileSystem || c.AttachmentMode == AttachBlockDevice, "RequestedCapabilities.AttachmentMode",
			"must be file-system, got %q", c.AttachmentMode)
		r.Check(slices.Contains(accessModes, c.AccessMode), "RequestedCapabilities.AccessMode",
			"must be one of %s, got %q", strings.Join(accessModes, ", "), c.AccessMode)
	}
	r.Check(len(v.RequestedCapabilities) <= len(accessModes), "RequestedCapabilities", "at most %d of them, got %d",
		len(accessModes), len(v.RequestedCapabilities))
}
