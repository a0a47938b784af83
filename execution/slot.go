package execution

import "time"

// Slot is an execution that counts in the quota of its namespace, from before it is started until its end is known or its runner ended.
type Slot struct {
	Namespace string
	AllocID   string // its runner's
	ID        string // the execution's
}

// Spent is what the executions of a namespace that ended on a day used.
type Spent struct {
	Namespace string
	Day       int64         // see Day
	CPU       time.Duration // user and system
	Bytes     int64         // that they wrote to their standard output and error
}

// Day is the number of the day in UTC; 0 is the first of January 1970.
func Day(t time.Time) int64 { return t.Unix() / int64(24*time.Hour/time.Second) }
