package jobdiff

// Kinds of a difference.
const (
	None    = "None"
	Added   = "Added"
	Deleted = "Deleted"
	Edited  = "Edited"
)

// Job is the difference of two versions of a job, in Nomad's shape. Nil lists are empty.
type Job struct {
	Type       string
	ID         string
	Fields     []*Field
	Objects    []*Object
	TaskGroups []*Group
}

// Group is a group's part of it.
type Group struct {
	Type    string
	Name    string
	Fields  []*Field
	Objects []*Object
	Tasks   []*Task
	Updates map[string]uint64 // what the scheduler would do: "create", "in-place update", …
}

// Task is a task's part of it.
type Task struct {
	Type        string
	Name        string
	Fields      []*Field
	Objects     []*Object
	Annotations []string
}

// Object is a nested object's.
type Object struct {
	Type    string
	Name    string
	Fields  []*Field
	Objects []*Object
}

// Field is a value's.
type Field struct {
	Type        string
	Name        string
	Old, New    string
	Annotations []string
}
