package server

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// account is a line of the guest's passwd file.
type account struct {
	name     string
	uid, gid uint32
	home     string
}

const maxAccountFile = 1 << 20

// guestFile is a small file that the guest may have replaced by anything, as it was read last.
type guestFile struct {
	path string

	mu   sync.Mutex
	seen syscall.Stat_t // guarded by mu
	text string         // guarded by mu
}

// read returns the content, "" of what is no regular file. It is read again only when the kernel says that it changed:
// every start asks.
func (g *guestFile) read() string {
	var st syscall.Stat_t
	if syscall.Stat(g.path, &st) != nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if st.Ino != g.seen.Ino || st.Dev != g.seen.Dev || st.Size != g.seen.Size || st.Mtim != g.seen.Mtim || st.Ctim != g.seen.Ctim {
		g.load()
	}
	return g.text
}

// load reads it anew. Caller holds mu.
func (g *guestFile) load() {
	g.text, g.seen = "", syscall.Stat_t{}
	fd, err := syscall.Open(g.path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = syscall.Close(fd) }()
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return
	}
	buf := make([]byte, min(max(st.Size, 0), maxAccountFile))
	n, _ := readFD(fd, buf)
	g.text, g.seen = string(buf[:max(n, 0)]), st
}

func parseAccounts(text string) (list []account) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) < 6 {
			continue
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, account{f[0], uint32(uid), uint32(gid), f[5]})
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

// accounts are the guest's users and groups, read when they are needed.
type accounts struct {
	users  []account
	groups []group
}

func (s *Server) readAccounts() accounts {
	return accounts{parseAccounts(s.passwd.read()), parseGroups(s.group.read())}
}

// find resolves "name", "uid" or "uid:gid". Errors: drover.Invalid.
func (a accounts) find(who string) (account, []uint32, error) {
	for _, u := range a.users {
		if u.name == who {
			return u, a.memberships(u), nil
		}
	}
	first, second, both := strings.Cut(who, ":")
	uid, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return account{}, nil, drover.Errorf(drover.Invalid, "unknown user %q", who)
	}
	u := account{uid: uint32(uid), gid: uint32(uid), home: "/"}
	for _, known := range a.users {
		if known.uid == u.uid {
			u = known
		}
	}
	if !both {
		return u, a.memberships(u), nil
	}
	gid, err := strconv.ParseUint(second, 10, 32)
	if err != nil {
		return account{}, nil, drover.Errorf(drover.Invalid, "unknown group in user %q", who)
	}
	u.gid = uint32(gid)
	return u, []uint32{u.gid}, nil
}

func (a accounts) memberships(u account) []uint32 {
	gids := []uint32{u.gid}
	for _, g := range a.groups {
		if u.name != "" && slices.Contains(g.members, u.name) && !slices.Contains(gids, g.gid) {
			gids = append(gids, g.gid)
		}
	}
	return gids
}

// home returns the home folder of a uid.
func (a accounts) home(uid uint32) string {
	for _, u := range a.users {
		if u.uid == uid {
			return u.home
		}
	}
	return "/"
}

// resolveUser decides whom a program runs as. nil means: as we are, because we may be nobody else.
func (s *Server) resolveUser(who string, privileged bool) (*spawn.User, string, error) {
	a := accounts{users: parseAccounts(s.passwd.read())} // whose groups are asked for seldom
	boot := s.boot()
	want := account{uid: boot.UID, gid: boot.GID}
	groups := boot.Groups
	if len(groups) == 0 {
		groups = []uint32{want.gid}
	}
	switch {
	case who != "":
		var err error
		if want, groups, err = s.readAccounts().find(who); err != nil {
			return nil, "", err
		}
	case privileged:
		want, groups = account{}, []uint32{0}
	}
	home := want.home
	if home == "" {
		home = a.home(want.uid)
	}
	if uid := os.Geteuid(); uid != 0 {
		if want.uid != uint32(uid) {
			return nil, "", drover.Errorf(drover.Forbidden, "running as uid %d needs a supervisor that runs as root, this one runs as uid %d", want.uid, uid)
		}
		return nil, home, nil
	}
	return &spawn.User{UID: want.uid, GID: want.gid, Groups: groups, KeepGroups: s.keepGroups}, home, nil
}
