package command

import (
	"github.com/drover-project/drover/volume"
)

// UpsertHostVolume asks a node for a volume, checked and complete, or changes what is asked for. Result: the volume as it is stored.
// Errors: NotFound, Conflict, Invalid.
type UpsertHostVolume struct {
	Volume *volume.HostVolume
	Time   int64 // unix ns
}

// DeleteHostVolume has the node delete a volume, which is forgotten when it has. With Force it is forgotten at once, whatever becomes of
// what is on the node. Result: the volume as it was, nil if it is forgotten. Errors: NotFound, Conflict while allocations mount it.
type DeleteHostVolume struct {
	Namespace string
	ID        string
	Force     bool
	Time      int64 // unix ns
}

// DeleteVolumeClaim forgets which volume an allocation of a group is to have: its next replacement goes where there is one of the name. Its
// job is looked at again. Errors: NotFound.
type DeleteVolumeClaim struct {
	Namespace string
	ID        string
	Time      int64 // unix ns
}

// Kind implements Command.
func (*DeleteVolumeClaim) Kind() Kind { return KindDeleteVolumeClaim }

// Kind implements Command.
func (*UpsertHostVolume) Kind() Kind { return KindUpsertHostVolume }

// Kind implements Command.
func (*DeleteHostVolume) Kind() Kind { return KindDeleteHostVolume }
