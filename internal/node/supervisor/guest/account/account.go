package account

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// Account is a line of the guest's passwd file.
type Account struct {
	Name     string
	UID, GID uint32
	Home     string
}

// parseAccounts reads passwd(5) and leaves out lines that are not whole: images have all kinds.
func parseAccounts(text string) (list []Account) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) < 6 {
			continue
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, Account{f[0], uint32(uid), uint32(gid), f[5]})
		}
	}
	return list
}

// group is a line of the guest's group file.
type group struct {
	name    string
	gid     uint32
	members []string
}

// parseGroups reads group(5) in the same way.
func parseGroups(text string) (list []group) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) < 4 {
			continue
		}
		if gid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
			list = append(list, group{f[0], uint32(gid), strings.Split(f[3], ",")})
		}
	}
	return list
}

// Table is the guest's users and groups at one moment.
type Table struct {
	users  []Account
	groups []group
}

// Find resolves "name", "uid" or "uid:gid". Errors: drover.Invalid.
func (a Table) Find(who string) (Account, []uint32, error) {
	for _, u := range a.users {
		if u.Name == who {
			return u, a.memberships(u), nil
		}
	}
	first, second, both := strings.Cut(who, ":")
	uid, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return Account{}, nil, drover.Errorf(drover.Invalid, "unknown user %q", who)
	}
	// A number without an account has the group of the same number, as in the raw_exec driver, and "/" as its home.
	u := Account{UID: uint32(uid), GID: uint32(uid), Home: "/"}
	for _, known := range a.users {
		if known.UID == u.UID {
			u = known
		}
	}
	if !both {
		return u, a.memberships(u), nil
	}
	gid, err := strconv.ParseUint(second, 10, 32)
	if err != nil {
		return Account{}, nil, drover.Errorf(drover.Invalid, "unknown group in user %q", who)
	}
	u.GID = uint32(gid)
	return u, []uint32{u.GID}, nil
}

// memberships are the gids that login would give: the user's own first, then those that name it as a member.
func (a Table) memberships(u Account) []uint32 {
	gids := []uint32{u.GID}
	for _, g := range a.groups {
		if u.Name != "" && slices.Contains(g.members, u.Name) && !slices.Contains(gids, g.gid) {
			gids = append(gids, g.gid)
		}
	}
	return gids
}

// home returns the home folder of a uid.
func (a Table) home(uid uint32) string {
	for _, u := range a.users {
		if u.UID == uid {
			return u.Home
		}
	}
	return "/"
}
