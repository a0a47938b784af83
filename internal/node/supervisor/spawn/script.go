package spawn

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// Script is a list of system calls that a staged child makes before its program. It is written by the parent, with all
// strings and structures that the calls need, because the child can neither allocate nor call Go.
type Script struct {
	ops   []op
	what  []string // what an op does, for its failure
	slots []uintptr
	keep  []any  // what arguments point to
	text  []byte // the strings of late
	err   error
}

// op is one call.
type op struct {
	trap     uintptr
	args     [6]uintptr
	fromSlot [6]bool // the argument is the number of a slot
	out      int     // slot of the result, -1 = none
	forgiven [2]syscall.Errno
	skipOK   int // calls left out after a success
	skipFail int // calls left out after a forgiven failure
}

// Arg is an argument of a call.
type Arg struct {
	value uintptr
	slot  bool
}

// Slot is a result of an earlier call, or a descriptor that came with the script.
type Slot int

// NewScript returns an empty script. The slots 0 to received-1 are the descriptors that Staged.Run gets.
func NewScript(received int) *Script {
	return &Script{slots: make([]uintptr, received), ops: make([]op, 0, usualCalls), what: make([]string, 0, usualCalls)}
}

// usualCalls are a little more than those of a sandbox.
const usualCalls = 160

// Num is a number.
func Num[T ~int | ~uint | ~uint32 | ~uint64 | ~uintptr](v T) Arg { return Arg{value: uintptr(v)} }

// Arg is the slot's value when the call is made.
func (s Slot) Arg() Arg { return Arg{value: uintptr(s), slot: true} }

// Str is a string; see Err.
func (s *Script) Str(text string) Arg {
	if strings.IndexByte(text, 0) >= 0 {
		s.err = fmt.Errorf("%q has a zero byte in it", text)
	}
	if len(s.text)+len(text) >= cap(s.text) {
		s.text = make([]byte, 0, max(textSize, len(text)+1))
		s.keep = append(s.keep, s.text)
	}
	at := len(s.text)
	s.text = append(append(s.text, text...), 0)
	return Arg{value: uintptr(unsafe.Pointer(&s.text[at]))}
}

// textSize is a little more than the strings of a sandbox need.
const textSize = 2 << 10

// Err is why the script cannot be run: a string of it that the kernel would understand otherwise.
func (s *Script) Err() error { return s.err }

// Bytes is the address of b, which belongs to the script from then on; 0 if it is empty.
func (s *Script) Bytes(b []byte) Arg {
	if len(b) == 0 {
		return Arg{}
	}
	s.keep = append(s.keep, b)
	return Arg{value: uintptr(unsafe.Pointer(&b[0]))}
}

// Pointer is the address of a structure on the heap, which the script keeps.
func Pointer[T any](s *Script, v *T) Arg {
	s.keep = append(s.keep, v)
	return Arg{value: uintptr(unsafe.Pointer(v))}
}

// Call adds a system call. what says what it does: "mounting /proc".
func (s *Script) Call(what string, trap uintptr, args ...Arg) *Call {
	o := op{trap: trap, out: -1}
	for i, a := range args {
		o.args[i], o.fromSlot[i] = a.value, a.slot
	}
	s.ops, s.what = append(s.ops, o), append(s.what, what)
	return &Call{s, len(s.ops) - 1}
}

// Call is one that was added.
type Call struct {
	s     *Script
	index int
}

func (c *Call) op() *op { return &c.s.ops[c.index] }

// Result keeps what the call returns.
func (c *Call) Result() Slot {
	c.s.slots = append(c.s.slots, 0)
	c.op().out = len(c.s.slots) - 1
	return Slot(c.op().out)
}

// Forgive goes on after these failures, two at most.
func (c *Call) Forgive(errno ...syscall.Errno) *Call {
	copy(c.op().forgiven[:], errno)
	return c
}

// ElseSkip leaves out what was added since, if the call succeeds: it was for a forgiven failure.
func (c *Call) ElseSkip() { c.op().skipOK = len(c.s.ops) - 1 - c.index }

// ThenSkip leaves out what was added since, if the call fails and is forgiven.
func (c *Call) ThenSkip() { c.op().skipFail = len(c.s.ops) - 1 - c.index }

// ScriptError is a call of a script that failed.
type ScriptError struct {
	What  string
	Errno syscall.Errno
}

// Error says what failed and why.
func (e *ScriptError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Errno) }

// Unwrap returns the errno.
func (e *ScriptError) Unwrap() error { return e.Errno }

// String lists the calls, for tests.
func (s *Script) String() string { return fmt.Sprint(slices.Compact(slices.Clone(s.what))) }

// run makes the calls. It returns only when one fails, or when the last is made; the number of the call is in at.
//
//go:norace
//go:nocheckptr
//go:nosplit
func (s *Script) run(at *int) syscall.Errno {
	for i := 0; i < len(s.ops); i++ {
		o := &s.ops[i]
		var a [6]uintptr
		for n := range a {
			a[n] = o.args[n]
			if o.fromSlot[n] {
				a[n] = s.slots[a[n]]
			}
		}
		r, _, e := syscall.RawSyscall6(o.trap, a[0], a[1], a[2], a[3], a[4], a[5])
		switch e {
		case 0:
			if o.out >= 0 {
				s.slots[o.out] = r
			}
			i += o.skipOK
		case o.forgiven[0], o.forgiven[1]:
			i += o.skipFail
		default:
			*at = i
			return e
		}
	}
	return 0
}
