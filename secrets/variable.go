package secrets

import "time"

// Variable is a variable in clear text, as who may read it sees it.
type Variable struct {
	VariableMetadata
	Items map[string]string
}

// VariableMetadata is what is known of a variable without its items.
type VariableMetadata struct {
	Namespace, Path          string
	CreateIndex, ModifyIndex uint64
	CreateTime, ModifyTime   int64         // Unix nanoseconds
	Lock                     *VariableLock `json:",omitempty"`
}

// VariableLock is a lock that somebody holds on a variable, or asks for.
type VariableLock struct {
	ID        string // who shows it is the holder
	TTL       string // how long it holds without being renewed; duration, default 15s
	LockDelay string // how long nobody gets it after it was lost; duration, default 15s
}

// Lock is a VariableLock as it is stored.
type Lock struct {
	ID         string
	TTL, Delay time.Duration
}

// SealedVariable is a variable as it is stored: its items are encrypted. It is never changed.
type SealedVariable struct {
	Namespace, Path          string
	CreateIndex, ModifyIndex uint64
	CreateTime, ModifyTime   int64  // Unix nanoseconds
	KeyID                    string // of the root key
	Data                     []byte // the items, encrypted
	Lock                     *Lock
}

// Meta returns what is known of the variable without a key. The lock's id is left out: who sees it holds the lock.
func (v *SealedVariable) Meta() VariableMetadata {
	m := VariableMetadata{
		Namespace: v.Namespace, Path: v.Path, CreateIndex: v.CreateIndex, ModifyIndex: v.ModifyIndex,
		CreateTime: v.CreateTime, ModifyTime: v.ModifyTime,
	}
	if v.Lock != nil {
		m.Lock = &VariableLock{TTL: v.Lock.TTL.String(), LockDelay: v.Lock.Delay.String()}
	}
	return m
}

// Conflict is the error of a write that something is in the way of.
type Conflict struct {
	// Var is what is there; without its items, where the caller may not read it.
	Var *Variable
}

// Error implements error.
func (c *Conflict) Error() string {
	return "cas conflict: the variable " + c.Var.Path + " is another one meanwhile, or is locked"
}

// Write is what is written, and under which conditions.
type Write struct {
	Var   *Variable
	Check *uint64 // the modify index that it must have; 0 = there must be none; nil = any
}

// LockID is that of the lock that who writes holds; "" if none.
func (w Write) LockID() string {
	if w.Var.Lock == nil {
		return ""
	}
	return w.Var.Lock.ID
}
