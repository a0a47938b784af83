package sandbox

import (
	"maps"
	"math"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Answers of the filter.
const (
	notPermitted = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	noCall       = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// Offsets in struct seccomp_data, on little-endian machines, which all that we run on are.
const (
	numberAt    = 0
	archAt      = 4
	argumentsAt = 16
)

// assembler collects what is to be done about each call. The kernel runs the program for every call there is, and translates it, each
// time that it takes it in. So calls are looked for in a tree, and neighbours with the same answer are one leaf of it.
type assembler struct {
	numbers map[string]int
	cases   map[uint32][]bpf.Instruction // by number; what they do not answer is allowed
}

// anyBit is true if one of the bits is set in the low half of an argument.
type anyBit struct {
	argument uint32
	bits     uint32
}

// low loads the low half of a system call's argument; BPF's registers have 32 bits, arguments 64.
func low(argument uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: argumentsAt + 8*argument, Size: 4}
}

// high loads the high half, which must be looked at where the kernel uses all of the argument.
func high(argument uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: argumentsAt + 8*argument + 4, Size: 4}
}

// program returns the whole. It begins by ending calls of other architectures, whose numbers mean something else, and calls
// that are too new.
func (a *assembler) program(arch uint32) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: noCall},
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: maxCall, SkipFalse: 1},
		bpf.RetConstant{Val: noCall},
	}, search(a.spans())...)
}

// span is a call and those after it, up to the next span, with what is to be done about them.
type span struct {
	from uint32
	body []bpf.Instruction
}

// spans are the whole range of numbers.
func (a *assembler) spans() []span {
	allow := []bpf.Instruction{bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}}
	list := []span{{0, allow}}
	add := func(s span) {
		if last := len(list) - 1; list[last].from == s.from {
			list = list[:last] // it had no call
		}
		if last := len(list) - 1; last < 0 || !slices.Equal(list[last].body, s.body) {
			list = append(list, s)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(a.cases)) {
		body := a.cases[n]
		if len(body) > 1 { // it has conditions
			body = append(slices.Clip(body), allow...)
		}
		add(span{n, body})
		add(span{n + 1, allow})
	}
	return list
}

// search finds the span of the number in the accumulator.
func search(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].body
	}
	half := len(spans) / 2
	below, from := search(spans[:half]), spans[half].from
	var code []bpf.Instruction
	if len(below) <= math.MaxUint8 {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: from, SkipTrue: uint8(len(below))}) // fits
	} else {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: from, SkipFalse: 1}, bpf.Jump{Skip: uint32(len(below))}) // some hundred
	}
	return append(append(code, below...), search(spans[half:])...)
}

// deny answers the calls, as far as this architecture has them.
func (a *assembler) deny(answer uint32, names ...string) {
	for _, name := range names {
		a.block(name, []bpf.Instruction{bpf.RetConstant{Val: answer}})
	}
}

// forbid does not permit the call if all conditions are true.
func (a *assembler) forbid(name string, all ...anyBit) {
	var body []bpf.Instruction
	for i, c := range all {
		rest := uint8(2*(len(all)-i-1) + 1) // a few instructions: what follows this condition
		body = append(body, low(c.argument), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: c.bits, SkipFalse: rest})
	}
	a.block(name, append(body, bpf.RetConstant{Val: notPermitted}))
}

// unless answers the call if its first argument is none of these.
func (a *assembler) unless(name string, answer uint32, allowed []uint32) {
	n := uint8(len(allowed)) // a few
	body := []bpf.Instruction{high(0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: n + 1}, low(0)}
	for i, v := range allowed {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: n - uint8(i)}) // a few
	}
	a.block(name, append(body, bpf.RetConstant{Val: answer}))
}

// sockets allows sockets of these families, and of netlink only the protocol that tells of interfaces and routes. Each other netlink
// protocol is a door to another part of the kernel. They get the answer of a kernel that lacks the part, which programs can handle. Some
// would end on notPermitted, such as Linux-PAM with the audit protocol.
func (a *assembler) sockets(families []uint32) {
	const noProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	n := uint8(len(families)) // a few
	body := []bpf.Instruction{high(0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: n + 2}, low(0)}
	for i, f := range families {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: n - uint8(i) + 4}) // a few
	}
	a.block("socket", append(body,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
		bpf.RetConstant{Val: notPermitted},
		low(2), // an int: the kernel looks at no more of it
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 1},
		bpf.RetConstant{Val: noProtocol}))
}

// block adds a case. What is said of a call first holds.
func (a *assembler) block(name string, body []bpf.Instruction) {
	n, ok := a.numbers[name]
	if !ok {
		return
	}
	if _, said := a.cases[uint32(n)]; !said { // a call's number
		a.cases[uint32(n)] = body // likewise
	}
}

// plainModes refuses calls that set the setuid or setgid bit of a file.
func (a *assembler) plainModes() {
	// Of O_TMPFILE only the bit of its own counts: it contains O_DIRECTORY, which many harmless calls set.
	const setid, creates = unix.S_ISUID | unix.S_ISGID, unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	modes := map[string]uint32{"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		a.forbid(name, anyBit{modes[name], setid})
	}
	a.forbid("open", anyBit{1, creates}, anyBit{2, setid})
	a.forbid("openat", anyBit{2, creates}, anyBit{3, setid})
}
