package account

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Database are the guest's users and groups, whose files the guest may change at any time.
type Database struct {
	passwd, group guestFile
	keepGroups    bool // setgroups is not allowed in this user namespace
}

// Open returns the database of two files in the form of passwd(5) and group(5). They are read when they are needed, and
// need not be there.
func Open(passwd, group string) *Database {
	return &Database{passwd: guestFile{path: passwd}, group: guestFile{path: group}, keepGroups: denied()}
}

// denied reads whether groups cannot be set. Each start of a supervisor does, and os.ReadFile makes twice as many calls.
func denied() bool {
	fd, err := unix.Open("/proc/self/setgroups", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var text [4]byte
	n, _ := unix.Read(fd, text[:])
	return string(text[:max(n, 0)]) == "deny"
}

// Read returns what the files say now.
func (d *Database) Read() Table {
	return Table{parseAccounts(d.passwd.read()), parseGroups(d.group.read())}
}

// Resolve decides whom a program runs as, and where that one is at home: who (a name, "uid" or "uid:gid"), else root if
// it is privileged, else the task's default user. A nil user means: as we are, because we may be nobody else. Errors:
// Invalid, Forbidden.
func (d *Database) Resolve(boot *wire.Boot, who string, privileged bool) (*spawn.User, string, error) {
	a := Table{users: parseAccounts(d.passwd.read())} // whose groups are asked for seldom
	want := Account{UID: boot.UID, GID: boot.GID}
	groups := boot.Groups
	if len(groups) == 0 {
		groups = []uint32{want.GID}
	}
	switch {
	case who != "":
		var err error
		if want, groups, err = d.Read().Find(who); err != nil {
			return nil, "", err
		}
	case privileged:
		want, groups = Account{}, []uint32{0}
	}
	home := want.Home
	if home == "" {
		home = a.home(want.UID)
	}
	if uid := os.Geteuid(); uid != 0 {
		if want.UID != uint32(uid) {
			return nil, "", drover.Errorf(drover.Forbidden,
				"running as uid %d needs a supervisor that runs as root, this one runs as uid %d", want.UID, uid)
		}
		return nil, home, nil
	}
	return &spawn.User{UID: want.UID, GID: want.GID, Groups: groups, KeepGroups: d.keepGroups}, home, nil
}
