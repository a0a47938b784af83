package cluster

import "strings"

// Age names the history that a state's indexes count: those of different ages cannot be compared. It is empty for a server that is
// alone.
func (s *State) Age() string {
	if s == nil || s.ID == "" {
		return ""
	}
	return s.ID + "/" + s.Epoch
}

// Before reports whether an age came before another one. Nothing comes before a state of another cluster: that began anew. No age at
// all is that of a server that does not know yet what cluster it is in.
func Before(age, other string) bool {
	if age == "" || other == "" {
		return age == "" && other != ""
	}
	id, epoch, _ := strings.Cut(age, "/")
	otherID, otherEpoch, _ := strings.Cut(other, "/")
	return id == otherID && epoch < otherEpoch
}
