package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
)

func newPool(t *testing.T) *Pool {
	t.Helper()
	p := NewPool(filepath.Join(t.TempDir(), "idle"), clock.Wall{})
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// sayAndEnd runs a main task to its end.
func sayAndEnd(t *testing.T, c *Client, script string) driver.Exit {
	t.Helper()
	_, err := c.StartTask(t.Context(), TaskSpec{Argv: []string{"sh", "-c", script}}, nil)
	require.NoError(t, err)
	exit, err := c.WaitTask(t.Context(), nil)
	require.NoError(t, err)
	return exit
}

func TestOneSupervisorServesTwoTasks(t *testing.T) {
	t.Parallel()
	logs, p := t.TempDir(), newPool(t)
	first, state := launch(t, withLogs(t, logs))
	require.Equal(t, 3, sayAndEnd(t, first, "echo first; ("+napping("988.7")+" & ); exit 3").Code)
	require.True(t, p.Put(t.Context(), state, options()))
	require.NoDirExists(t, state)
	require.Empty(t, processesLike(napping("988.7")))
	<-first.Done()
	_, err := first.WaitTask(t.Context(), nil)
	require.ErrorIs(t, err, driver.ErrGone, "who had the first task does not reach the second")

	other, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), "an empty folder may be there")
	cfg := LaunchConfig{
		ID:       "second",
		StateDir: filepath.Join(dir, "a", "b"),
		WorkDir:  dir,
		User:     User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
		Env:      map[string]string{"K": "v"},
	}
	withLogs(t, other)(&cfg)
	second := p.Take(t.Context(), cfg, options())
	require.NotNil(t, second)
	defer func() { require.NoError(t, second.Shutdown(t.Context())); _ = second.Close() }()
	require.Equal(t, first.Pid(), second.Pid())
	require.Nil(t, p.Take(t.Context(), cfg, options()), "there is no other one")
	require.Equal(t, 0, sayAndEnd(t, second, "pwd; echo second >&2").Code)
	read := func(path string) string {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, "first\n", read(filepath.Join(logs, "web.stdout.0")))
	require.Equal(t, dir+"\n", read(filepath.Join(other, "web.stdout.0")))
	require.Equal(t, "second\n", read(filepath.Join(other, "web.stderr.0")))
	again, err := Connect(t.Context(), SocketPath(cfg.StateDir), options())
	require.NoError(t, err)
	require.Equal(t, second.Pid(), again.Pid())
	r := run(t, again, execution.Spec{ID: "x", Argv: []string{"sh", "-c", "echo $K"}})
	require.Equal(t, "v\n", string(r.stdout))
	require.NoError(t, again.Close())
}

func TestPoolRefusesWhatIsNotLikeNew(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*testing.T, *Client){
		"runs": func(t *testing.T, c *Client) {
			t.Helper()
			_, err := c.StartTask(t.Context(), TaskSpec{Argv: []string{"sleep", "988"}}, nil)
			require.NoError(t, err)
		},
		"never ran": func(*testing.T, *Client) {},
		"execution": func(t *testing.T, c *Client) {
			t.Helper()
			s, err := c.StartExecution(t.Context(), execution.Spec{ID: "x", Argv: []string{"sleep", "988"}, Detach: time.Minute})
			require.NoError(t, err)
			defer s.Close()
			require.Equal(t, 0, sayAndEnd(t, c, "true").Code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, state := launch(t, nil)
			use(t, c)
			require.False(t, newPool(t).Put(t.Context(), state, options()))
			require.DirExists(t, state)
			_, err := c.Executions(t.Context())
			require.NoError(t, err, "it serves its task as before")
		})
	}
}

func TestIdleSupervisorEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c, state := launch(t, nil)
	require.Equal(t, 0, sayAndEnd(t, c, "true").Code)
	require.True(t, p.Put(t.Context(), state, options()))
	r, ok := p.pop()
	require.True(t, ok)
	require.NoError(t, r.client.Close()) // as a killed agent's ends
	require.NoError(t, r.client.process.wait(t.Context()))
	require.NoError(t, os.RemoveAll(r.dir))
}

func TestPoolPassesOverAKilledSupervisor(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c, state := launch(t, nil)
	require.Equal(t, 0, sayAndEnd(t, c, "true").Code)
	require.True(t, p.Put(t.Context(), state, options()))
	require.NoError(t, c.process.kill())
	<-p.idle[0].client.Done()
	require.Nil(t, p.Take(t.Context(), LaunchConfig{StateDir: filepath.Join(t.TempDir(), "s")}, options()))
}
