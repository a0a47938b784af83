package drover

import (
	"fmt"
	"time"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// TaskGroup is the unit of placement: its tasks share a node, an allocation folder and a network.
type TaskGroup struct {
	Name             string
	Count            *int // default 1; for a pool group the scheduler takes Pool.Size instead
	Constraints      []*constraint.Constraint
	Affinities       []*constraint.Affinity
	Spreads          []*constraint.Spread
	Tasks            []*Task
	Volumes          map[string]*VolumeRequest
	RestartPolicy    *RestartPolicy
	ReschedulePolicy *ReschedulePolicy
	Disconnect       *DisconnectStrategy
	EphemeralDisk    *EphemeralDisk
	Update           *UpdateStrategy
	Migrate          *MigrateStrategy
	Networks         []*network.Resource
	Meta             map[string]string
	Services         []*service.Service
	ShutdownDelay    *time.Duration
	MaxRunDuration   *time.Duration
	Scaling          *ScalingPolicy

	StopAfterClientDisconnect *time.Duration
	MaxClientDisconnect       *time.Duration
	PreventRescheduleOnLost   bool

	// Pool makes the group a warm pool: the scheduler keeps Pool.Size unclaimed live allocations. Ours, not Nomad's.
	Pool *WarmPool `json:",omitempty"`

	Consul map[string]any `json:",omitempty" codec:"-"` // Nomad's, refused
}

// LostAfter is how long allocations of the group stay unknown when their node is not heard of, before they are lost;
// 0 = they are lost at once.
func (g *TaskGroup) LostAfter() time.Duration {
	if g == nil || g.Disconnect == nil || g.Pool != nil {
		return 0
	}
	return g.Disconnect.LostAfter
}

// DesiredCount is how many allocations the group should have: its count, 1 without one, and of a warm pool its size with the
// demand of now. A system job has so many on each node.
func (g *TaskGroup) DesiredCount() int {
	switch {
	case g.Pool != nil:
		return g.Pool.Size + g.Pool.Demand
	case g.Count == nil:
		return 1
	}
	return *g.Count
}

// WarmPool asks the scheduler for allocations that wait to be claimed. A claimed allocation does not count.
type WarmPool struct {
	Size       int // unclaimed allocations to keep
	MaxRunners int // bound of warm and claimed together; 0 = none
	// Demand is how many more are wanted now, because claims wait; control writes it, a registration resets it.
	Demand int `json:",omitempty"`
}

// Task returns the named task or nil.
func (g *TaskGroup) Task(name string) *Task {
	for _, t := range g.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// EphemeralDisk is the allocation folder's size and fate.
type EphemeralDisk struct {
	Sticky  bool
	Migrate bool
	SizeMB  int // default 300
}

// VolumeRequest asks for a volume of the node.
type VolumeRequest struct {
	Name           string
	Type           string
	Source         string
	ReadOnly       bool
	Sticky         bool
	AccessMode     string
	AttachmentMode string
	PerAlloc       bool
	MountOptions   map[string]any `json:",omitempty" codec:"-"` // Nomad's, refused
}

// SourceOf is the name of the volume that the allocation with the index gets: a per_alloc volume has one for each, such as data[2].
func (r *VolumeRequest) SourceOf(index int) string {
	if r.PerAlloc && index >= 0 {
		return fmt.Sprintf("%s[%d]", r.Source, index)
	}
	return r.Source
}

// PerAlloc reports whether the volumes of the group's allocations have different names.
func (g *TaskGroup) PerAlloc() bool {
	for _, r := range g.Volumes {
		if r.PerAlloc {
			return true
		}
	}
	return false
}

// VolumeMount mounts a group's volume into a task.
type VolumeMount struct {
	Volume          string
	Destination     string
	ReadOnly        bool
	PropagationMode string
	SELinuxLabel    string
}

// ScalingPolicy bounds and annotates a group's count.
type ScalingPolicy struct {
	ID          string
	Namespace   string
	Type        string
	Target      map[string]string
	Policy      map[string]any
	Min         *int64
	Max         *int64
	Enabled     *bool
	CreateIndex uint64
	ModifyIndex uint64
}
