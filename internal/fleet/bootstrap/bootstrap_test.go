package bootstrap_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/bootstrap/sshtest"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent stands for our program: it notes how it was started, and runs.
const agent = `#!/bin/sh
case $1 in
version) echo drover ;;
agent) echo "$@" >"$(dirname "$3")/started"; exec sleep 1000 ;;
esac
`

// bed is an ssh server and a bootstrap that fits it.
type bed struct {
	*sshtest.Server
	cfg   bootstrap.Config
	state string
	steps []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	sharetest.Take(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, []byte(agent), 0o600))
	b := &bed{Server: sshtest.New(t), state: filepath.Join(dir, "it's state")}
	b.cfg = bootstrap.Config{
		Port: b.Port(), Signer: b.User, Binary: program, Dir: filepath.Join(dir, "bin"), State: b.state, Agent: "client {}\n",
		Host: bootstrap.HostKey{Pinned: []string{ssh.FingerprintSHA256(b.HostKey())}}, Retry: time.Millisecond,
		Report: func(s bootstrap.Step) { b.steps = append(b.steps, s.Name+": "+s.Says) },
	}
	t.Cleanup(func() {
		if pid := b.pid(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return b
}

func (b *bed) pid() int {
	text, _ := os.ReadFile(filepath.Join(b.state, "agent.pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func (b *bed) run(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return bootstrap.Run(ctx, b.cfg, "127.0.0.1", clock.Wall{})
}

func (b *bed) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.state, name))
	require.NoError(t, err)
	return string(data)
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ready := filepath.Join(t.TempDir(), "ready")
	b.cfg.Probe = "test -e " + ready + " || { touch " + ready + "; exit 1; }" // succeeds the second time
	require.NoError(t, b.run(t))
	require.Len(t, b.steps, 5)
	require.Equal(t, "client {}\n", b.read(t, "agent.hcl"))
	info, err := os.Stat(filepath.Join(b.state, "agent.hcl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds the token")
	require.Contains(t, b.read(t, "started"), "-data-dir "+b.state)
	first := b.pid()
	require.NoError(t, syscall.Kill(first, 0))

	b.steps = nil
	require.NoError(t, b.run(t))
	require.Contains(t, strings.Join(b.steps, "\n"), "was there")
	require.Contains(t, strings.Join(b.steps, "\n"), "it runs already")
	require.Equal(t, first, b.pid())
}

func TestHostKeys(t *testing.T) {
	t.Parallel()
	line := func(s *sshtest.Server) string {
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.HostKey())))
	}
	console := func(text string) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return []byte(text), nil }
	}
	t.Run("pinned", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.cfg.Host.Pinned = []string{"ssh-rsa nonsense", line(b.Server) + " somebody"}
		require.NoError(t, b.run(t))
	})
	t.Run("another one than pinned", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.Rekey(sshtest.NewKey(t))
		err := b.run(t)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "host_keys")
		require.Zero(t, b.Logins.Load(), "we do not log in at a stranger's")
	})
	t.Run("on the console, which is late", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		calls := 0
		b.cfg.Host = bootstrap.HostKey{Console: func(context.Context) ([]byte, error) {
			if calls++; calls < 3 {
				return []byte("[    0.1] Linux\n"), nil
			}
			return []byte("ci-info: x\n-----BEGIN SSH HOST KEY KEYS-----\n" + line(b.Server) + " root@host\n-----END SSH HOST KEY KEYS-----\n"), nil
		}}
		require.NoError(t, b.run(t))
		require.Equal(t, 3, calls)
	})
	t.Run("not the one on the console", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		text := "-----BEGIN SSH HOST KEY KEYS-----\n" + line(b.Server) + "\n-----END SSH HOST KEY KEYS-----\n"
		b.Rekey(sshtest.NewKey(t))
		b.cfg.Host = bootstrap.HostKey{Console: console(text)}
		require.Equal(t, drover.Forbidden, drover.CodeOf(b.run(t)))
		require.Zero(t, b.Logins.Load())
	})
	t.Run("by a secret", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		file := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
		b.cfg.Host = bootstrap.HostKey{Secret: "s3cret", SecretFile: file}
		require.NoError(t, b.run(t))
		b.cfg.Host.Secret = "another"
		require.Equal(t, drover.Forbidden, drover.CodeOf(b.run(t)))
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.cfg.Host = bootstrap.HostKey{}
		err := b.run(t)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
		require.ErrorContains(t, err, "ssh.host_keys")
	})
}

// A connection that breaks is made anew; who answers then must have the same key.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.cfg.Probe = "true"
	b.cfg.Report = func(s bootstrap.Step) {
		if s.Name == "boot probe" {
			b.Cut()
		}
	}
	require.NoError(t, b.run(t))
	require.EqualValues(t, 2, b.Logins.Load())

	b = newBed(t)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("s"), 0o600))
	b.cfg.Host = bootstrap.HostKey{Secret: "s", SecretFile: file}
	b.cfg.Report = func(s bootstrap.Step) {
		if s.Name == "host key" {
			b.Rekey(sshtest.NewKey(t))
			b.Cut()
		}
	}
	err := b.run(t)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%v", err)
	require.NotContains(t, b.Said(), "agent.hcl", "the token was not told")
}

// impatient is a clock on which time is up as soon as somebody would wait before trying again, however slow the machine is.
type impatient struct {
	clock.Wall
	pause func()
}

func (c impatient) NewTimer(d time.Duration) clock.Timer {
	c.pause()
	return c.Wall.NewTimer(d)
}

// What does not mend by itself is told at once; what may is tried until the time is up, and the reason told.
func TestWhatGoesWrong(t *testing.T) {
	t.Parallel()
	short := func(t *testing.T, b *bed, address string) error {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return bootstrap.Run(ctx, b.cfg, address, impatient{pause: cancel})
	}
	t.Run("nobody is there", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.cfg.Port = 1
		require.ErrorContains(t, short(t, b, "127.0.0.1"), "refused")
	})
	t.Run("our key is not taken", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.cfg.Signer = sshtest.NewKey(t)
		require.ErrorContains(t, short(t, b, "127.0.0.1"), "does not take our key")
	})
	t.Run("the probe fails", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.cfg.Probe = "echo no network yet >&2; exit 7"
		err := short(t, b, "127.0.0.1")
		require.ErrorContains(t, err, "boot probe")
		require.ErrorContains(t, err, "no network yet")
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	})
	t.Run("a command hangs", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		b.cfg.Probe, b.cfg.CommandTimeout = "exec sleep 2", 50*time.Millisecond
		require.ErrorContains(t, short(t, b, "127.0.0.1"), "boot probe")
	})
	t.Run("our program does not run there", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		require.NoError(t, os.WriteFile(b.cfg.Binary, []byte("\x7fELFnot for this machine"), 0o600))
		err := b.run(t)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "another processor")
	})
	t.Run("the agent ends at once", func(t *testing.T) {
		t.Parallel()
		b := newBed(t)
		require.NoError(t, os.WriteFile(b.cfg.Binary, []byte("#!/bin/sh\ntest $1 = version && exit 0\necho ports.http: in use\nexit 1\n"), 0o600))
		require.ErrorContains(t, short(t, b, "127.0.0.1"), "ports.http: in use")
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	_, err := bootstrap.ReadKey("/no/such/key")
	require.ErrorContains(t, err, "ssh.key")
	bad := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(bad, []byte("x"), 0o600))
	_, err = bootstrap.ReadKey(bad)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// The script is one that a shell takes, and the configuration arrives as it is.
func TestCloudInit(t *testing.T) {
	t.Parallel()
	script := bootstrap.CloudInit("client {\n  x = \"$HOME `id` \\\\ '\"\n}\n")
	out, err := exec.Command("sh", "-n", "-c", script).CombinedOutput()
	require.NoError(t, err, string(out))
	dir := t.TempDir()
	script = strings.ReplaceAll(script, "/var/lib/drover", dir)
	script = strings.ReplaceAll(strings.ReplaceAll(script, "/run/systemd/system", "/no"), "exec drover agent", "exec echo")
	out, err = exec.Command("sh", "-c", script).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, "agent.hcl"))
	require.NoError(t, err)
	require.Equal(t, "client {\n  x = \"$HOME `id` \\\\ '\"\n}\n", string(text))
}
