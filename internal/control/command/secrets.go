package command

import "github.com/drover-project/drover/secrets"

// PutRootKey stores a new root key, active or prepublished. Where it is active, the one that was is retired: it is inactive, or with Full
// it and all inactive ones are rekeying. Result: *secrets.RootKeyMeta. Errors: Conflict if First is set and there is a key; Invalid.
type PutRootKey struct {
	Key   *secrets.RootKey
	Full  bool
	First bool
	Time  int64 // Unix nanoseconds
}

// SetRootKeyState moves a root key on: from prepublished to active, or from rekeying to deprecated. A key that becomes active retires
// the one that was. Result: nil. Errors: NotFound; Conflict if it is in another state than From, or does not go to To from there.
type SetRootKeyState struct {
	KeyID    string
	From, To secrets.RootKeyState
	Time     int64 // Unix nanoseconds
}

// DeleteRootKeys removes root keys, all or none. Result: nil. Errors: NotFound; Invalid for the active one; Conflict for one in
// use, unless Force is set: then what it encrypted is lost.
type DeleteRootKeys struct {
	KeyIDs []string
	Force  bool
}

// Kind implements Command.
func (*PutRootKey) Kind() Kind { return KindPutRootKey }

// Kind implements Command.
func (*SetRootKeyState) Kind() Kind { return KindSetRootKeyState }

// Kind implements Command.
func (*DeleteRootKeys) Kind() Kind { return KindDeleteRootKeys }

// VariableOp is what a ChangeVariable does.
type VariableOp uint8

// The operations. Append only: the numbers are in logs on disk.
const (
	_              VariableOp = iota
	PutVariable               // stores the items
	DeleteVariable            // removes the variable
	LockVariable              // locks it with LockID, Var.Lock's times, and stores the items if Var.Data is not empty
	UnlockVariable            // ends the lock LockID
	RekeyVariable             // stores the same items, encrypted with another key, at the same index
)

// ChangeVariable changes one variable. With Check it is done only at the modify index CheckIndex; 0 = only if there is none. Who changes
// a locked one shows the lock's id. Result: *VariableChange.
type ChangeVariable struct {
	Op         VariableOp
	Var        *secrets.SealedVariable
	Check      bool
	CheckIndex uint64
	LockID     string
	Time       int64 // Unix nanoseconds
}

// VariableChange is how a change ended: with the variable as it is now, or, where Conflict is set, as it is in the way of the change.
// Var is nil if there is none.
type VariableChange struct {
	Var      *secrets.SealedVariable
	Conflict bool
}

// Kind implements Command.
func (*ChangeVariable) Kind() Kind { return KindChangeVariable }
