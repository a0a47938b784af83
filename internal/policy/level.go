package policy

// Level is a coarse disposition. A higher level of two holds, so that a denial always does.
type Level uint8

// The levels. Each but Deny has what the lower ones have.
const (
	None Level = iota
	List       // of plugins only
	Read
	Write
	Deny
)

var levelNames = names[Level]{"", "list", "read", "write", "deny"}

// String returns the word of the policy language; "" for None.
func (l Level) String() string { return levelNames.name(l) }

// Allows reports whether what needs the level is allowed to who has l.
func (l Level) Allows(need Level) bool { return l >= need && l != Deny }

// Part is something of the cluster that has a coarse level only.
type Part uint8

// The parts of the cluster. Fleet is Drover's own; a policy without it has the operator's level for the fleet.
const (
	Agent Part = iota
	Node
	Operator
	Quota
	Plugin
	Fleet
	Parts // how many there are
)

var partNames = names[Part]{"agent", "node", "operator", "quota", "plugin", "fleet"}

// String returns the word of the policy language.
func (p Part) String() string { return partNames.name(p) }
