package fsm

import "drover"

// interner makes equal strings of many allocations share their bytes: each was decoded on its own.
type interner map[string]string

func (in interner) of(s *string) {
	if *s == "" {
		return
	}
	if known, ok := in[*s]; ok {
		*s = known
		return
	}
	in[*s] = *s
}

// alloc shares the strings that an allocation has in common with others.
func (in interner) alloc(a *drover.Allocation) {
	for _, s := range []*string{
		&a.Namespace, &a.EvalID, &a.NodeID, &a.NodeName, &a.JobID, &a.TaskGroup, &a.DesiredStatus, &a.DesiredDescription,
		&a.ClientStatus, &a.ClientDescription, &a.DeploymentID,
	} {
		in.of(s)
	}
}
