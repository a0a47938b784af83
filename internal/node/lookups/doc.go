// Package lookups gets from control what the templates of a node's tasks ask, and tells of changes.
//
// Tasks that may know the same, those of one group's task, share what they ask. All questions of a node go in few calls, which wait
// at control until an answer changes: what does not change costs nothing. Each such call is made by a goroutine, which ends when nobody
// follows its questions any more.
package lookups
