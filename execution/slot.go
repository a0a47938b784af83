package execution

// Slot is an execution that counts in the quota of its namespace, from before it is started until its end is known or its runner ended.
type Slot struct {
	Namespace string
	AllocID   string // its runner's
	ID        string // the execution's
}
