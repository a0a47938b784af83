package drover

// HostVolumeInfo is a folder that the node offers.
type HostVolumeInfo struct {
	Path     string
	ReadOnly bool
	ID       string            // of a HostVolume; "" = it is in the node's configuration
	Report   *HostVolumeReport `json:"-"` // likewise nil
}

// HostVolumeReport is what a node says about a volume that control wants of it.
type HostVolumeReport struct {
	Namespace     string
	Wanted        uint64 // HostVolume.Wanted of the request that it has done, or could not do
	CapacityBytes int64
	Failure       string // why it could not; "" = it could
	Gone          bool   // it has been deleted, or never was there
}

// Offered reports whether allocations can mount the volume.
func (i *HostVolumeInfo) Offered() bool {
	return i != nil && (i.Report == nil || i.Report.Failure == "" && !i.Report.Gone)
}

// OfferedTo reports whether allocations of the namespace can mount the volume. Those of the node's configuration are everybody's.
func (i *HostVolumeInfo) OfferedTo(namespace string) bool {
	return i.Offered() && (i.Report == nil || i.Report.Namespace == namespace)
}
