package form

import "github.com/drover-project/drover"

// Size is an amount of resources.
type Size struct {
	CPU      int64 `hcl:"cpu,optional"`    // MHz; default 0, which is no limit
	MemoryMB int64 `hcl:"memory,optional"` // MB; default 0, which is no limit
	DiskMB   int64 `hcl:"disk,optional"`   // MB; default 0, which is no limit
}

// Capacity returns the size; nothing if it is not set.
func (s *Size) Capacity() drover.Capacity {
	if s == nil {
		return drover.Capacity{}
	}
	return drover.Capacity{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}
}
