package account

import (
	"slices"
	"strconv"
)

// Names translates ids to the guest's names.
type Names struct {
	users  map[uint32]string
	groups map[uint32]string
}

// Names returns the names of a table. Of two lines with one id the first one counts.
func (a Table) Names() *Names {
	n := &Names{map[uint32]string{}, map[uint32]string{}}
	for _, u := range slices.Backward(a.users) {
		n.users[u.UID] = u.Name
	}
	for _, g := range slices.Backward(a.groups) {
		n.groups[g.gid] = g.name
	}
	return n
}

// User returns the name of a user, or the id in digits.
func (n *Names) User(uid uint32) string { return orDigits(n.users[uid], uid) }

// Group returns the name of a group, or the id in digits.
func (n *Names) Group(gid uint32) string { return orDigits(n.groups[gid], gid) }

// orDigits is what ls shows of an id without a name.
func orDigits(name string, id uint32) string {
	if name == "" {
		return strconv.FormatUint(uint64(id), 10)
	}
	return name
}
