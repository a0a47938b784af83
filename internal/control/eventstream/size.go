package eventstream

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/execution"
)

// sizeOf estimates what keeping the events keeps in memory, in bytes. Values are mostly shared with the state; they
// are counted as if they were not, since the ring outlives them there.
func sizeOf(e drover.Events) int64 {
	size := int64(64)
	for i := range e.Events {
		size += 480 // the event, its map and its keys
		for _, v := range e.Events[i].Payload {
			size += sizeOfPayload(v)
		}
	}
	return size
}

func sizeOfPayload(v any) int64 {
	switch v := v.(type) {
	case *drover.Allocation:
		size := int64(1_000)
		for _, t := range v.TaskStates {
			size += 300 + int64(len(t.Events))*400
		}
		return size
	case *drover.Job:
		size := int64(1_000 + len(v.Payload))
		for _, g := range v.TaskGroups {
			size += 800 + int64(len(g.Tasks))*2_000
		}
		return size
	case *acl.Policy:
		return int64(500 + len(v.Rules))
	case *execution.Execution:
		return 1_500
	case *drover.Evaluation:
		return 600 + int64(len(v.FailedTGAllocs))*1_000
	case *drover.Node:
		return 2_000 + int64(len(v.Attributes))*100
	case *drover.Deployment:
		return 500 + int64(len(v.TaskGroups))*300
	}
	return 300
}
