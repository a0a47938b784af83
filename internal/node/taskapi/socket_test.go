package taskapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// still is a clock on which nothing is refilled.
type still struct{ clock.Wall }

func (still) Now() time.Time { return time.Unix(1_700_000_000, 0) }

// fixture is an API whose one token is "right".
type fixture struct {
	*API
	asked  atomic.Int64 // about tokens
	handle http.HandlerFunc
}

func newFixture(handle http.HandlerFunc) *fixture {
	f := &fixture{handle: handle}
	f.API = New(Deps{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.handle(w, r) }),
		Admit: func(r *http.Request) error {
			f.asked.Add(1)
			switch r.Header.Get("X-Nomad-Token") {
			case "right":
				return nil
			case "lost":
				return drover.Errorf(drover.Unavailable, "no server answers")
			}
			return drover.Errorf(drover.Forbidden, "ACL token not found")
		},
		Clock: still{}, Log: slog.New(slog.DiscardHandler),
	})
	return f
}

// open opens a socket in a folder of its own.
func (f *fixture) open(t *testing.T, user int) (s *Socket, path string) {
	t.Helper()
	folder := t.TempDir()
	s, err := f.Open(t.Context(), Task{AllocID: "a", Name: "web", Folder: folder, User: user})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(); s.Wait(t.Context()) })
	return s, filepath.Join(folder, Name)
}

// caller is a client that calls at a path.
func caller(t *testing.T, path string) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask asks with a token.
func ask(t *testing.T, c *http.Client, token string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://nomad/v1/x", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", token)
	res, err := c.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

// TestWhoShowsATokenIsAnswered: others get Nomad's words, and a token that nobody can judge is not called wrong.
func TestWhoShowsATokenIsAnswered(t *testing.T) {
	t.Parallel()
	f := newFixture(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr, " ", r.Host, " ", r.URL.Path)
	})
	_, path := f.open(t, Anybody)
	c := caller(t, path)
	status, text := ask(t, c, "right")
	require.Equal(t, "200 task/a/web localhost /v1/x", fmt.Sprint(status, " ", text))
	status, text = ask(t, c, "wrong")
	require.Equal(t, "403 Forbidden", fmt.Sprint(status, " ", text))
	status, text = ask(t, c, "")
	require.Equal(t, "403 Forbidden", fmt.Sprint(status, " ", text))
	status, text = ask(t, c, "lost")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "no server answers")
}

// TestTheTaskMayConnect: the socket is the user's alone, or anybody's who comes to the folder, whatever the umask is.
func TestTheTaskMayConnect(t *testing.T) {
	t.Parallel()
	f := newFixture(nil)
	self := os.Getuid()
	for user, want := range map[int]string{
		Anybody: fmt.Sprint(self, " Srw-rw-rw-"), self: fmt.Sprint(self, " Srw-------"), 1234: "1234 Srw-------",
	} {
		if user == 1234 && self != 0 {
			want = fmt.Sprint(self, " Srw-rw-rw-") // nobody but root gives a file away
		}
		_, path := f.open(t, user)
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid, " ", info.Mode()))
	}
}

// TestWhatATaskLeftInTheWay: no link is followed, nothing but the socket gets another owner or mode, and long paths are no matter.
func TestWhatATaskLeftInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	folder := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o777))
		return path
	}
	open := func(path string) error {
		s, err := f.Open(t.Context(), Task{Folder: path, User: Anybody})
		s.Close()
		s.Wait(t.Context())
		return err
	}
	link := folder("link")
	require.NoError(t, os.Symlink(outside, filepath.Join(link, Name)))
	require.NoError(t, open(link))
	file := folder("file")
	require.NoError(t, os.Link(outside, filepath.Join(file, Name)))
	require.NoError(t, open(file))
	info, err := os.Stat(outside)
	require.NoError(t, err)
	require.Equal(t, "-rw-------", info.Mode().String())

	require.ErrorContains(t, open(folder("folder/"+Name)+"/.."), "listening at api.sock")
	require.NoError(t, os.Symlink(link, filepath.Join(dir, "elsewhere")))
	require.ErrorIs(t, open(filepath.Join(dir, "elsewhere")), syscall.ENOTDIR)
	require.ErrorIs(t, open(filepath.Join(dir, "nothing")), os.ErrNotExist)
	require.NoError(t, open(folder(strings.Repeat("long/", 40))))

	for name, put := range map[string]func(path string) error{
		"a file":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link":    func(path string) error { return os.Symlink(outside, path) },
		"another's": func(path string) error { return os.Link(outside, path) },
		"a socket twice": func(path string) error {
			return errors.Join(syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0), os.Link(path, path+"2"))
		},
	} {
		at := folder("replaced " + name)
		require.NoError(t, put(filepath.Join(at, Name)))
		opened, err := openFolder(at)
		require.NoError(t, err)
		require.Equal(t, drover.Conflict, drover.CodeOf(permit(opened, Anybody)), name)
		require.NoError(t, opened.Close())
	}
}

// TestTheSocketGoesWithItsTask: nothing is left of it, and what was connected is cut: requests, idle connections, and streams that were
// taken over.
func TestTheSocketGoesWithItsTask(t *testing.T) {
	t.Parallel()
	hijacked, waits := make(chan struct{}), make(chan struct{})
	f := newFixture(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/take" {
			_, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				close(hijacked) // the connection stays open
			}
			return
		}
		close(waits)
		<-r.Context().Done()
	})
	s, path := f.open(t, Anybody)
	idle, err := net.Dial("unix", path)
	require.NoError(t, err)
	taken, err := net.Dial("unix", path)
	require.NoError(t, err)
	_, err = fmt.Fprint(taken, "GET /take HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: right\r\n\r\n")
	require.NoError(t, err)
	<-hijacked
	asking, err := net.Dial("unix", path)
	require.NoError(t, err)
	_, err = fmt.Fprint(asking, "GET / HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: right\r\n\r\n")
	require.NoError(t, err)
	<-waits
	s.Close()
	s.Wait(t.Context())
	require.NoFileExists(t, path)
	for _, c := range []net.Conn{idle, taken, asking} {
		_, err := io.Copy(io.Discard, c) // until it is cut
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	_, err = net.Dial("unix", path)
	require.ErrorIs(t, err, os.ErrNotExist)
	s.Close()
	var none *Socket
	none.Close()
	none.Wait(t.Context())
}

// TestATaskFloodsItselfOnly: of connections, requests and wrong tokens it has so many and no more, and other tasks have theirs.
func TestATaskFloodsItselfOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	_, quiet := f.open(t, Anybody)
	_, path := f.open(t, Anybody)
	others := caller(t, quiet)

	var open []net.Conn
	for range maxConns + 10 { // the rest waits in the kernel
		c, err := net.Dial("unix", path)
		require.NoError(t, err)
		open = append(open, c)
	}
	last := open[len(open)-1]
	_, err := fmt.Fprint(last, "GET / HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: right\r\n\r\n")
	require.NoError(t, err)
	status, _ := ask(t, others, "right")
	require.Equal(t, http.StatusOK, status)
	for _, c := range open[:len(open)-1] {
		require.NoError(t, c.Close())
	}
	line, err := bufio.NewReader(last).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "200")
	require.NoError(t, last.Close())

	c := caller(t, path)
	for range wrongBurst {
		status, _ := ask(t, c, "guess")
		require.Equal(t, http.StatusForbidden, status)
	}
	asked := f.asked.Load()
	for range 10 {
		status, text := ask(t, c, "guess")
		require.Equal(t, http.StatusTooManyRequests, status)
		require.Contains(t, text, "wrong tokens")
	}
	require.Equal(t, asked, f.asked.Load(), "nobody is asked any more")

	_, busy := f.open(t, Anybody)
	c = caller(t, busy)
	for range requestBurst {
		status, _ := ask(t, c, "right")
		require.Equal(t, http.StatusOK, status)
	}
	status, text := ask(t, c, "right")
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, text, "500 requests a second")
	status, _ = ask(t, others, "right")
	require.Equal(t, http.StatusOK, status)
}
