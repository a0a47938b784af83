package account

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

const (
	passwdText = "root:x:0:0:root:/root:/bin/sh\n" +
		"# a comment\n" +
		"short:x:1\n" +
		"ann:x:1000:1000:Ann:/home/ann:/bin/sh\n" +
		"twin:x:1000:1001::/home/twin:\n" +
		"big:x:99999999999:0::/:\n" +
		"minus:x:-1:0::/:\n" +
		"last:x:5:6::/last:"
	groupText = "root:x:0:\nshort:x\nstaff:x:50:ann,bob\nwheel:x:51:ann\nann:x:1000:ann\nhuge:x:99999999999:\nlast:x:6:last"
)

func database(t *testing.T) *Database {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "passwd"), []byte(passwdText), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "group"), []byte(groupText), 0o600))
	return Open(filepath.Join(dir, "passwd"), filepath.Join(dir, "group"))
}

func TestFindingAUser(t *testing.T) {
	t.Parallel()
	table := database(t).Read()
	for who, want := range map[string]struct {
		uid, gid uint32
		home     string
		groups   []uint32
	}{
		"root":       {0, 0, "/root", []uint32{0}},
		"ann":        {1000, 1000, "/home/ann", []uint32{1000, 50, 51}},
		"last":       {5, 6, "/last", []uint32{6}},
		"0":          {0, 0, "/root", []uint32{0}},
		"5":          {5, 6, "/last", []uint32{6}},
		"77":         {77, 77, "/", []uint32{77}},
		"77:8":       {77, 8, "/", []uint32{8}},
		"5:9":        {5, 9, "/last", []uint32{9}},
		"4294967295": {4294967295, 4294967295, "/", []uint32{4294967295}},
	} {
		u, groups, err := table.Find(who)
		require.NoError(t, err, who)
		require.Equal(t, want.uid, u.UID, who)
		require.Equal(t, want.gid, u.GID, who)
		require.Equal(t, want.home, u.Home, who)
		require.Equal(t, want.groups, groups, who)
	}
	for _, who := range []string{
		"", "nobody", "short", "big", "minus", "-1", "4294967296", "ann:staff", "1:", "1:-1", ":1", "1:2:3", "# a comment",
	} {
		_, _, err := table.Find(who)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), who)
	}
}

func TestNamesOfIDs(t *testing.T) {
	t.Parallel()
	n := database(t).Read().Names()
	require.Equal(t, "ann", n.User(1000), "the first line of an id counts")
	require.Equal(t, "root", n.Group(0))
	require.Equal(t, "77", n.User(77))
	require.Equal(t, "4294967295", n.Group(4294967295))
	none := Open("/none/passwd", "/none/group").Read().Names()
	require.Equal(t, "0", none.User(0))
}

func TestWhomAProgramRunsAs(t *testing.T) {
	t.Parallel()
	d := database(t)
	if os.Geteuid() != 0 {
		boot := &wire.Boot{UID: uint32(os.Geteuid())}
		user, _, err := d.Resolve(boot, "", false)
		require.NoError(t, err)
		require.Nil(t, user, "as we are")
		_, _, err = d.Resolve(boot, "", true)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
		return
	}
	boot := &wire.Boot{UID: 1000, GID: 1000, Groups: []uint32{1000, 7}}
	for _, c := range []struct {
		who        string
		privileged bool
		uid        uint32
		groups     []uint32
		home       string
	}{
		{"", false, 1000, []uint32{1000, 7}, "/home/ann"},
		{"", true, 0, []uint32{0}, "/root"},
		{"last", true, 5, []uint32{6}, "/last"},
		{"3:4", false, 3, []uint32{4}, "/"},
	} {
		user, home, err := d.Resolve(boot, c.who, c.privileged)
		require.NoError(t, err)
		require.Equal(t, c.uid, user.UID, c.who)
		require.Equal(t, c.groups, user.Groups, c.who)
		require.Equal(t, c.home, home, c.who)
	}
	user, _, err := d.Resolve(&wire.Boot{UID: 9, GID: 8}, "", false)
	require.NoError(t, err)
	require.Equal(t, []uint32{8}, user.Groups, "a default user without groups has its own")
	_, _, err = d.Resolve(boot, "nobody-here", false)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// TestWorkAsAUser: what is made belongs to the user, and afterwards the goroutine is root again.
func TestWorkAsAUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root acts as others")
	}
	d := database(t)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	fileOf := func(name string) func() error {
		return func() error { return os.WriteFile(filepath.Join(dir, name), nil, 0o600) }
	}
	owner := func(name string) [2]uint32 {
		var st syscall.Stat_t
		require.NoError(t, syscall.Stat(filepath.Join(dir, name), &st))
		return [2]uint32{st.Uid, st.Gid}
	}
	boot := &wire.Boot{UID: 1000, GID: 1001}
	require.NoError(t, d.As(boot, false, fileOf("user")))
	require.NoError(t, d.As(boot, true, fileOf("privileged")))
	require.NoError(t, d.As(&wire.Boot{}, false, fileOf("root")))
	require.NoError(t, fileOf("after")())
	require.Equal(t, [2]uint32{1000, 1001}, owner("user"))
	for _, name := range []string{"privileged", "root", "after"} {
		require.Equal(t, [2]uint32{0, 0}, owner(name), name)
	}
	require.ErrorIs(t, d.As(boot, false, func() error {
		_, err := os.ReadDir("/proc/1/fd")
		return err
	}), os.ErrPermission, "it has the user's rights only")
	_, err := os.ReadDir("/proc/1/fd")
	require.NoError(t, err)
}
