package sandboxsetup

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

func TestScriptNeedsARootAndItsDescriptors(t *testing.T) {
	t.Parallel()
	_, err := Script(&Config{}, 0, nil)
	require.ErrorContains(t, err, "no root")
	_, err = Script(&Config{Lowers: []Source{{FD: 1}}}, 1, nil)
	require.ErrorContains(t, err, "descriptor is missing")
	_, err = Script(&Config{Lowers: []Source{{FD: 0}}, Binds: []Bind{{Source: Source{FD: 0}, Target: "/a\x00b"}}}, 1, nil)
	require.ErrorContains(t, err, "zero byte")
	_, err = Script(&Config{Lowers: []Source{{FD: 0}, {FD: -1, Path: "/x", ReadOnly: true}}}, 1, nil)
	require.NoError(t, err)
}

func TestSealingComesLast(t *testing.T) {
	t.Parallel()
	s, err := Script(
		&Config{Lowers: []Source{{FD: 0}}, ReadOnly: true, Seccomp: make([]byte, 8), MaskDirs: []string{"/m"}, NoUserNamespaces: true},
		1,
		nil,
	)
	require.NoError(t, err)
	require.Regexp(
		t,
		`forbidding nested user namespaces.*masking /m.*making it read-only: / .*`+
			`dropping a capability setting no_new_privs installing the seccomp filter executing the supervisor\]$`,
		s.String(),
	)
}

// TestMasksAreClonedWhileTheirSourceIsAttached: kernels before 6.15 do not clone detached mounts.
func TestMasksAreClonedWhileTheirSourceIsAttached(t *testing.T) {
	t.Parallel()
	s, err := Script(&Config{Lowers: []Source{{FD: 0}}, MaskDirs: []string{"/m", "/n"}}, 1, nil)
	require.NoError(t, err)
	const clone = "cloning the empty directory"
	require.Regexp(t, clone+" making it read-only: "+clone+" "+clone+" .*changing the root.*masking /m masking /n", s.String())
	require.NotRegexp(t, "changing the root.*"+clone, s.String())
}

func TestExplain(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Explain(&spawn.ScriptError{What: mountingProc, Errno: unix.EPERM}), "systempaths=unconfined")
	require.NotContains(t, Explain(&spawn.ScriptError{What: mountingProc, Errno: unix.ENOMEM}).Error(), "systempaths")
	require.NoError(t, Explain(nil))
}
