package policy

// Set is a set of capabilities of one kind, and whether they are denied. A set that denies has none.
type Set[C ~uint8] uint64

// denied is the bit of a set that denies; no capability has it.
const denied = 1 << 63

// Of returns the set of the capabilities.
func Of[C ~uint8](of ...C) Set[C] {
	var s Set[C]
	for _, c := range of {
		s |= 1 << c
	}
	return s
}

// Denied returns the set that denies.
func Denied[C ~uint8]() Set[C] { return denied }

// Has reports whether the set has the capability and does not deny.
func (s Set[C]) Has(c C) bool { return s&denied == 0 && s&(1<<c) != 0 }

// Denies reports whether the set denies.
func (s Set[C]) Denies() bool { return s&denied != 0 }

// Allows reports whether the set has any capability and does not deny.
func (s Set[C]) Allows() bool { return s != 0 && s&denied == 0 }

// With returns what is in one of both; it denies if one of them does.
func (s Set[C]) With(o Set[C]) Set[C] { return s | o }

// names are the words of a kind of capabilities, by value.
type names[C ~uint8] []string

// find returns the capability of a word.
func (n names[C]) find(word string) (C, bool) {
	for i, name := range n {
		if name == word {
			return C(i), true
		}
	}
	return 0, false
}

// String returns the word of a capability; "unknown" for a value that has none.
func (n names[C]) name(c C) string {
	if int(c) < len(n) {
		return n[c]
	}
	return "unknown"
}
