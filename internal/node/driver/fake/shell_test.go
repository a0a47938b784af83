package fake_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/fake"
)

// runner is a warm one in virtual time.
func runner(t *testing.T, test func(t *testing.T, h driver.Handle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := fake.New(fake.Config{Clock: clock.Wall{}})
		spec := driver.Spec{ID: "a/t/1", AllocID: "a", TaskName: "t", Pool: true, Env: map[string]string{"GREETING": "hello"}}
		h, err := d.Start(t.Context(), spec)
		require.NoError(t, err)
		test(t, h)
		require.NoError(t, h.Destroy(context.Background()))
		synctest.Wait()
	})
}

func TestTheLanguage(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		out, err string
		code     int
	}{
		"echo a  b 'c  d' \"e;f\"": {out: "a b c  d e\n", err: "", code: 127}, // a semicolon always ends a command
		"echo one; echo two >&2":   {out: "one\n", err: "two\n"},
		"echo $GREETING":           {out: "hello\n"},
		"pwd":                      {out: "/\n"},
		"true; false":              {code: 1},
		"false\ntrue":              {},
		"exit 7; echo never":       {code: 7},
		"yes 3":                    {out: "y\ny\ny\n"},
		":":                        {},
		"":                         {},
		"nonsense":                 {err: "sh: nonsense: not found\n", code: 127},
		"nonsense; echo on":        {out: "on\n", err: "sh: nonsense: not found\n"},
		"cat none":                 {err: "cat: none: No such file or directory\n", code: 1},
		"sleep 2.5; echo slept":    {out: "slept\n"},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			runner(t, func(t *testing.T, h driver.Handle) {
				r := drivertest.Sh(t, h.(driver.Execer), script)
				require.Equal(t, want.out, r.Out)
				if want.err != "" {
					require.Equal(t, want.err, r.Err)
				}
				require.Equal(t, want.code, r.Receipt.ExitCode)
				require.Equal(t, int64(len(r.Out)), r.Receipt.StdoutBytes)
			})
		})
	}
}

func TestCommandsWithoutAShell(t *testing.T) {
	t.Parallel()
	runner(t, func(t *testing.T, h driver.Handle) {
		do := func(spec execution.Spec) drivertest.Result { return drivertest.Do(t, h.(driver.Execer), spec) }
		require.Equal(t, "a b  c\n", do(execution.Spec{Argv: []string{"/bin/echo", "a", "b  c"}}).Out)
		r := do(execution.Spec{Argv: []string{"env"}, Env: map[string]string{"A": "1"}})
		require.Contains(t, r.Out, "A=1\n")
		require.Contains(t, r.Out, "GREETING=hello\n")
		require.Contains(t, do(execution.Spec{Argv: []string{"env", "X=y", "sh", "-c", "env"}}).Out, "X=y\n")
		require.Equal(t, "/work\n", do(execution.Spec{Argv: []string{"pwd"}, WorkDir: "work/"}).Out)
		r = do(execution.Spec{Argv: []string{"nonsense"}})
		require.Equal(t, execution.CauseStartFailed, r.Receipt.Cause)
		require.Equal(t, 127, r.Receipt.ExitCode)
		require.Contains(t, r.Receipt.Error, "nonsense")
	})
}

func TestLimitsInVirtualTime(t *testing.T) {
	t.Parallel()
	runner(t, func(t *testing.T, h driver.Handle) {
		begin := time.Now()
		spec := execution.Spec{Argv: []string{"sleep", "1000"}, Limits: drover.Limits{Wall: 3 * time.Second}}
		r := drivertest.Do(t, h.(driver.Execer), spec)
		require.Equal(t, execution.CauseTimeout, r.Receipt.Cause)
		require.NotZero(t, r.Receipt.ExitCode)
		require.Equal(t, 3*time.Second, time.Since(begin))
	})
}

func TestStdinAndASecondReader(t *testing.T) {
	t.Parallel()
	runner(t, func(t *testing.T, h driver.Handle) {
		x := h.(driver.Execer)
		first, err := x.StartExecution(t.Context(), execution.Spec{ID: "cat", Argv: []string{"cat"}, Stdin: true})
		require.NoError(t, err)
		require.NoError(t, first.Write(t.Context(), []byte("one ")))
		list, err := x.Executions(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.True(t, list[0].Running)
		_, err = x.StartExecution(t.Context(), execution.Spec{ID: "cat", Argv: []string{"cat"}})
		require.Equal(t, drover.Conflict, drover.CodeOf(err))
		second, err := x.AttachExecution(t.Context(), "cat", execution.Offsets{})
		require.NoError(t, err)
		require.NoError(t, second.Write(t.Context(), []byte("two")))
		require.NoError(t, second.CloseStdin(t.Context()))
		for _, s := range []execution.Session{first, second} {
			r, err := drivertest.Drain(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, "one two", r.Out)
			require.Zero(t, r.Receipt.ExitCode)
			require.NoError(t, s.Close())
		}
		_, err = x.AttachExecution(t.Context(), "none", execution.Offsets{})
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	})
}

func TestSignalsOfAnExecution(t *testing.T) {
	t.Parallel()
	runner(t, func(t *testing.T, h driver.Handle) {
		for name, want := range map[string]int{"SIGTERM": 143, "SIGKILL": 137} {
			s, err := h.(driver.Execer).StartExecution(t.Context(), execution.Spec{ID: name, Argv: []string{"sleep", "1000"}})
			require.NoError(t, err)
			require.Equal(t, drover.Invalid, drover.CodeOf(s.Signal(t.Context(), "nonsense")))
			require.NoError(t, s.Signal(t.Context(), name))
			r, err := drivertest.Drain(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, want, r.Receipt.ExitCode)
			require.NoError(t, s.Close())
		}
	})
}

func TestFilesInMemory(t *testing.T) {
	t.Parallel()
	runner(t, func(t *testing.T, h driver.Handle) {
		f := h.(driver.Filer).Files()
		require.NoError(t, f.Apply(t.Context(), []execution.FileChange{
			{Path: "d/a", Write: true, Data: []byte("12345")}, {Path: "d/sub", Mkdir: true}, {Path: "d/.hidden", Write: true},
		}))
		require.NoError(t, f.Write(t.Context(), execution.FileChange{Path: "d/sub/b", Mode: 0o600}, strings.NewReader("text")))
		list, err := f.List(t.Context(), execution.FileRequest{Path: "d", Recursive: true})
		require.NoError(t, err)
		var names []string
		for _, i := range list {
			names = append(names, i.Type+i.Path)
		}
		require.ElementsMatch(t, []string{"-.hidden", "-a", "dsub", "-sub/b"}, names)
		info, r, err := f.Read(t.Context(), execution.FileRequest{Path: "d/a", Offset: 1, Length: 3})
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "234", string(text))
		require.Equal(t, int64(5), info.Size)
		require.Equal(t, "12345", drivertest.Sh(t, h.(driver.Execer), "cat d/a").Out)

		archive, err := f.Archive(t.Context(), execution.FileRequest{Path: "d"})
		require.NoError(t, err)
		all, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.NoError(t, f.Extract(t.Context(), execution.FileRequest{Path: "copy"}, bytes.NewReader(all)))
		_, r, err = f.Read(t.Context(), execution.FileRequest{Path: "copy/sub/b"})
		require.NoError(t, err)
		text, err = io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "text", string(text))

		require.NoError(t, f.Apply(t.Context(), []execution.FileChange{{Path: "d/*", Delete: true}, {Path: "none", Delete: true}}))
		list, err = f.List(t.Context(), execution.FileRequest{Path: "d"})
		require.NoError(t, err)
		require.Len(t, list, 1, "what is hidden stays")
		for what, change := range map[string]execution.FileChange{
			"no path": {Write: true}, "no change": {Path: "x"}, "a folder": {Path: "copy", Write: true},
		} {
			require.Equal(t, drover.Invalid, drover.CodeOf(f.Apply(t.Context(), []execution.FileChange{change})), what)
		}
		_, _, err = f.Read(t.Context(), execution.FileRequest{Path: "none"})
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		require.Error(t, f.Extract(t.Context(), execution.FileRequest{Path: "bad"}, strings.NewReader(strings.Repeat("x", 2000))))
		broken := errors.New("lost")
		err = f.Write(t.Context(), execution.FileChange{Path: "half"}, io.MultiReader(strings.NewReader("x"), failing{broken}))
		require.ErrorIs(t, err, broken)
		_, _, err = f.Read(t.Context(), execution.FileRequest{Path: "half"})
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestTheWorldOutlivesItsAgent: a new driver finds what runs, until it is lost or destroyed.
func TestTheWorldOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := fake.NewWorld()
		d := fake.New(fake.Config{Clock: clock.Wall{}, World: world})
		start := func(id string) driver.Handle {
			h, err := d.Start(t.Context(), driver.Spec{ID: id, TaskName: "t", Config: map[string]any{"run_for": "1h"}})
			require.NoError(t, err)
			return h
		}
		one, two, three := start("1"), start("2"), start("3")
		require.Equal(t, 3, world.Running())
		later := fake.New(fake.Config{Clock: clock.Wall{}, World: world})
		again, err := later.Attach(t.Context(), drivertest.ThroughJSON(t, one.State()))
		require.NoError(t, err)
		world.End("1", driver.Exit{Code: 5})
		exit, err := again.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5, exit.Code)
		world.Lose("2")
		_, err = later.Attach(t.Context(), two.State())
		require.ErrorIs(t, err, driver.ErrGone)
		require.Equal(t, 1, world.Running())
		require.NotEmpty(t, world.Left())
		require.NoError(t, three.Stop(t.Context(), "", time.Minute))
		for _, h := range []driver.Handle{one, again, two, three} {
			require.NoError(t, h.Destroy(t.Context()))
		}
		require.Empty(t, world.Left())
		require.Zero(t, world.Running())
		synctest.Wait()
	})
}
