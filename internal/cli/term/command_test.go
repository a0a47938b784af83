package term

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/api"
)

// app is one whose agent answers "[]" to everything, and remembers the last request.
func app(t *testing.T) (a *App, out *bytes.Buffer, last *string) {
	t.Helper()
	out, last = &bytes.Buffer{}, new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		*last = r.Method + " " + r.URL.RequestURI() + " " + string(body)
		if err == nil {
			_, _ = io.WriteString(w, "[]") // the client is this process
		}
	}))
	t.Cleanup(s.Close)
	env := map[string]string{"DROVER_ADDR": s.URL}
	return &App{In: strings.NewReader("typed"), Out: out, Err: out, Getenv: func(k string) string { return env[k] }}, out, last
}

// execute runs a command with words.
func execute(t *testing.T, c *cobra.Command, args ...string) error {
	t.Helper()
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(io.Discard)
	return c.ExecuteContext(t.Context())
}

func TestTheNumberOfWords(t *testing.T) {
	t.Parallel()
	a, _, _ := app(t)
	var got []string
	run := func(_ context.Context, _ *App, args []string) error { got = args; return nil }
	for _, c := range []struct {
		least, most int
		words       string
		fails       string
	}{
		{0, 0, "", ""},
		{0, 0, "a", "1 argument given; it is: x A"},
		{1, 2, "", "0 arguments given"},
		{1, 2, "a b", ""},
		{1, 2, "a b c", "3 arguments given"},
		{1, -1, "a b c d e", ""},
		{1, -1, "", "0 arguments given"},
	} {
		got = nil
		err := execute(t, Command(a, "x A", "", c.least, c.most, run), strings.Fields(c.words)...)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails)
			require.Equal(t, drover.Invalid, drover.CodeOf(err))
			require.Nil(t, got)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.words, strings.Join(got, " "))
	}
}

func TestAGroupSuggestsWhatIsNear(t *testing.T) {
	t.Parallel()
	g := Group("job", "", &cobra.Command{Use: "status", RunE: func(*cobra.Command, []string) error { return nil }})
	g.Args = cobra.ArbitraryArgs
	require.NoError(t, execute(t, g), "without a word it helps")
	require.ErrorContains(t, execute(t, g, "statsu"), `job has no command "statsu"; perhaps: status; 'job -help' lists them`)
	err := execute(t, g, "qqqqqq")
	require.NotContains(t, err.Error(), "perhaps")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestDescriptionsAreTrimmed(t *testing.T) {
	t.Parallel()
	c := &cobra.Command{}
	Describe(c, "\nLong\ntext.\n", "\na\nb\n")
	require.Equal(t, "Long\ntext.", c.Long)
	require.Equal(t, "  a\n  b", c.Example)
	Describe(c, "x", "")
	require.Equal(t, "  a\n  b", c.Example)
}

func TestCommandsGetAClient(t *testing.T) {
	t.Parallel()
	a, _, last := app(t)
	c := NomadCommand(a, "x", "", 0, 0, func(ctx context.Context, c *api.Client,
		_ []string,
	) error {
		return c.Put(ctx, "/v1/x", nil, nil, nil)
	})
	require.NoError(t, execute(t, c))
	require.Equal(t, "PUT /v1/x ", *last)
	c = NativeCommand(a, "x", "", 0, 0, func(ctx context.Context, c *client.Client, _ []string) error {
		_, err := c.Environments(ctx)
		return err
	})
	require.NoError(t, execute(t, c))
	require.Equal(t, "GET /v1/environments ", *last)
	a.Target.CACert = "/no/such"
	require.ErrorContains(t, execute(t, NomadCommand(a, "x", "", 0, 0, nil)), "-ca-cert")
	require.ErrorContains(t, execute(t, NativeCommand(a, "x", "", 0, 0, nil)), "-ca-cert")
}

func TestListsAndNamedThings(t *testing.T) {
	t.Parallel()
	a, out, last := app(t)
	list := Listing[string]{
		Path: "/v1/x", Query: api.Query("a", "b"), Page: &Page{filter: "f", token: "t", perPage: 3}, None: "There are none.", Heading: "X",
		Row: func(s string) []string { return []string{s} },
	}
	require.NoError(t, List(t.Context(), a, &Output{}, list))
	require.Equal(t, "There are none.\n", out.String())
	require.Equal(t, "GET /v1/x?a=b&filter=f&next_token=t&per_page=3 ", *last)
	n := Named{Kind: "Node pool", ItemPath: "/v1/pool/"}
	require.NoError(t, execute(t, n.DeleteCommand(a, ""), "a/b c"))
	require.Equal(t, "DELETE /v1/pool/a%2Fb%20c ", *last)
	require.Contains(t, out.String(), "Node pool \"a/b c\" was deleted.\n")
}

func TestInputIsAFileOrStdin(t *testing.T) {
	t.Parallel()
	a, _, _ := app(t)
	text, err := a.ReadInput(t.Context(), "-")
	require.NoError(t, err)
	require.Equal(t, "typed", string(text))
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("kept"), 0o600))
	text, err = a.ReadInput(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
	_, err = a.ReadInput(t.Context(), path+"x")
	require.EqualError(t, err, "reading "+path+"x: no such file or directory")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// TestStdinThatSaysNothingIsLeft: Ctrl-C ends a command that waits for what cannot be interrupted.
func TestStdinThatSaysNothingIsLeft(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close() // a pipe
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := (&App{In: r}).ReadInput(ctx, "-")
	require.Equal(t, drover.Canceled, drover.CodeOf(err))
}

func TestExitErrors(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&ExitError{Code: 7}).Error())
	require.Equal(t, "EOF", (&ExitError{Code: 7, Err: io.EOF}).Error())
}

func TestInputIsPumped(t *testing.T) {
	t.Parallel()
	var sent string
	ends := 0
	end := func() error { ends++; return nil }
	PumpInput(strings.NewReader("abc"), func(p []byte) error { sent += string(p); return nil }, end)
	require.Equal(t, "abc", sent)
	require.Equal(t, 1, ends)
	PumpInput(strings.NewReader("abc"), func([]byte) error { return io.ErrClosedPipe }, end)
	require.Equal(t, 1, ends, "who does not read is not told of the end")
}

func TestATerminal(t *testing.T) {
	t.Parallel()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Rows: 33, Cols: 99}))
	a := &App{In: slave, Out: slave}
	c := a.Console()
	require.NotNil(t, c)
	require.Equal(t, execution.WindowSize{Rows: 33, Cols: 99}, c.Size())
	require.NoError(t, c.Raw())
	_, err = master.WriteString("\x03")
	require.NoError(t, err)
	key := make([]byte, 1)
	_, err = slave.Read(key)
	require.NoError(t, err)
	require.Equal(t, "\x03", string(key), "a key like all others")
	c.Restore()
	c.Restore() // once is enough, twice is no harm
	(*Console)(nil).Restore()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.Nil(t, (&App{In: slave, Out: &bytes.Buffer{}}).Console())
	require.Nil(t, (&App{In: null, Out: slave}).Console())
	require.Nil(t, (&App{In: slave, Out: null}).Console())
	unknown := &Console{in: null, out: null}
	require.Equal(t, execution.WindowSize{Rows: 24, Cols: 80}, unknown.Size())
	require.ErrorContains(t, unknown.Raw(), "making the terminal raw")
}

func TestWhatCannotBeInterruptedIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error)
		go func() { // ends with ctx
			_, err := UnlessInterrupted(ctx, func() (int, error) { <-block; return 1, nil })
			result <- err
		}()
		synctest.Wait()
		cancel(interrupted(syscall.SIGTERM))
		require.ErrorIs(t, <-result, context.Canceled)
		close(block)
	})
	n, err := UnlessInterrupted(t.Context(), func() (int, error) { return 7, io.EOF })
	require.Equal(t, 7, n)
	require.ErrorIs(t, err, io.EOF)
}
