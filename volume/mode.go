package volume

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drover-project/drover"
)

// Refuses says why the volume cannot be mounted in the way that the request wants, whoever else mounts it; "" if it can. The rules are
// Nomad's: the modes must be those of one of the volume's capabilities, and single-node-reader-only is for requests that only read,
// single-node-writer for those that write.
func (v *HostVolume) Refuses(r *drover.VolumeRequest) string {
	access, attachment := r.Access(), cmp.Or(r.AttachmentMode, drover.AttachFileSystem)
	switch {
	case !slices.ContainsFunc(v.RequestedCapabilities, func(c *HostVolumeCapability) bool {
		return c != nil && c.AccessMode == access && c.AttachmentMode == attachment
	}):
		return fmt.Sprintf("has no capability with access_mode %s and attachment_mode %s", access, attachment)
	case access == drover.AccessReader && !r.ReadOnly:
		return "is not written with access_mode " + access
	case access == drover.AccessWriter && r.ReadOnly:
		return "is not mounted read_only with access_mode " + access
	}
	return ""
}
