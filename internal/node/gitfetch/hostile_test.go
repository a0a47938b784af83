package gitfetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/gitfetch/gittest"
)

// ways are with namespaces, which needs root, and without, as an agent of an ordinary user has it.
func ways(t *testing.T, f func(t *testing.T, change func(*Git))) {
	t.Helper()
	for name, apart := range map[string]bool{"apart": true, "beside": false} {
		if apart && !mayUnshare() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, func(g *Git) { g.apart = apart })
		})
	}
}

// What is judged is the address that is dialled, whatever name or redirect leads there.
func TestAddressesAreJudged(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "x")
	r.Commit()
	url := r.Serve()
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/repo.git"))
	require.NoError(t, err)
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://169.254.169.254"+q.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(away.Close)
	within := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://localhost:"+port+q.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(within.Close)
	ways(t, func(t *testing.T, change func(*Git)) {
		for name, c := range map[string]struct{ url, allow, says string }{
			"address":                 {url, "10.0.0.0/8", "127.0.0.1 is a loopback address"},
			"name":                    {"http://localhost:" + port + "/repo.git", "10.0.0.0/8", "is a loopback address"},
			"address in another form": {"http://[::ffff:127.0.0.1]:" + port + "/repo.git", "10.0.0.0/8", "is a loopback address"},
			"number":                  {"http://2130706433:" + port + "/repo.git", "10.0.0.0/8", "is a loopback address"},
			"redirect":                {away.URL + "/repo.git", "127.0.0.0/8", "169.254.169.254 is a link-local address"},
		} {
			g := newGit(c.allow)
			change(g)
			_, err := fetched(t, g, Want{URL: c.url})
			require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%s: %v", name, err)
			require.ErrorContains(t, err, c.says, name)
		}
		g := newGit("127.0.0.0/8")
		change(g)
		files, err := fetched(t, g, Want{URL: within.URL + "/repo.git"})
		require.NoError(t, err, "a redirect to where it may go")
		require.Equal(t, map[string]string{"a": "x"}, files)
	})
}

// A server that drips is waited for as long as the fetch may take, and nothing of it stays.
func TestServerThatDrips(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, change func(*Git)) {
		begun := make(chan struct{}, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000"))
			w.(http.Flusher).Flush()
			select {
			case begun <- struct{}{}:
			default:
			}
			<-q.Context().Done()
		}))
		t.Cleanup(s.Close)
		ctx, cancel := context.WithCancelCause(t.Context())
		tooLong := errors.New("it took too long")
		go func() { // ends with the test
			select {
			case <-begun:
				cancel(tooLong)
			case <-t.Context().Done():
			}
		}()
		g := newGit("127.0.0.0/8")
		change(g)
		w := Want{URL: s.URL + "/repo.git", Root: rootOf(t), Folder: "x", Size: 1 << 20}
		_, err := g.Fetch(ctx, w)
		require.ErrorIs(t, err, tooLong)
		requireEmpty(t, w)
		out, _ := exec.Command("pgrep", "-f", w.Root.Name()).Output()
		require.Empty(t, string(out), "processes that are left")
	})
}

// sealed runs a script in place of git.
func sealed(t *testing.T, change func(*Git), script string) (string, error) {
	t.Helper()
	g := newGit()
	change(g)
	w := Want{URL: "https://example.org/x", Root: rootOf(t), Size: 1 << 20}
	r, err := g.repository(w)
	require.NoError(t, err)
	require.NoError(t, r.lay(w, nil, ""))
	r.git = "/bin/sh"
	c := r.command(t.Context(), nil, "", nil, []string{"-c", script})
	out, err := c.Output()
	return string(out), c.failure(t.Context(), err)
}

// Whoever takes git over has its folder, and nothing else.
func TestGitIsSealedOff(t *testing.T) {
	t.Parallel()
	require.Positive(t, Landlock(), "the kernel of this machine has no landlock: these tests are of what it does")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s"), 0o644))
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	t.Cleanup(service.Close)
	reach := "printf 'GET / HTTP/1.0\r\n\r\n' | busybox nc " + strings.Replace(service.Listener.Addr().String(), ":", " ", 1)
	ways(t, func(t *testing.T, change func(*Git)) {
		for _, script := range []string{
			reach, "cat " + secret, "cat /etc/shadow", "cat /etc/hostname", "ls /root", "ls /", "ls /proc/1", "cat /proc/1/environ",
			"echo x > /usr/drover-test", "echo x > /dev/shm/drover-test", "mkdir /var/tmp/drover-test", "printf '#!/bin/sh\\n' > x; chmod +x x; ./x",
			"head -c 2000000 /dev/zero > large && cat large",
		} {
			out, err := sealed(t, change, script)
			require.Error(t, err, "%s: %s", script, out)
		}
		out, err := sealed(t, change, "pwd; ulimit -v; ulimit -n; ulimit -c; echo x > inside; cat inside; env | cut -d= -f1 | sort")
		require.NoError(t, err)
		lines := strings.Fields(out)
		require.Equal(t, []string{fmt.Sprint(memory >> 10), "256", "0", "x"}, lines[1:5])
		require.NotContains(t, out, "SSH_AUTH_SOCK")
	})
	if mayUnshare() {
		apart := func(g *Git) { g.apart = true }
		out, err := sealed(t, apart, "id -u; id -G; pwd; echo $$; ip -o link | wc -l; test ! -e "+filepath.Dir(secret)+" && echo hidden")
		require.NoError(t, err)
		lines := strings.Fields(out)
		require.Len(t, lines, 6)
		require.Equal(t, []string{lines[0], inside, "1", "1", "hidden"}, lines[1:])
		require.Greater(t, lines[0], "1879048192")
	}
}

// Others write to the root as well, such as another task's artifact that unpacks: what they plant leads nowhere.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "x")
	r.Commit()
	url := r.Serve()
	ways(t, func(t *testing.T, change func(*Git)) {
		outside := t.TempDir()
		g := newGit("127.0.0.0/8")
		change(g)
		w := Want{URL: url, Root: rootOf(t), Folder: "task/private", Size: 1 << 20}
		require.NoError(t, os.Symlink(outside, filepath.Join(w.Root.Name(), "task")))
		_, err := g.Fetch(t.Context(), w)
		require.ErrorContains(t, err, "escapes")

		require.NoError(t, w.Root.Remove("task"))
		require.NoError(t, w.Root.MkdirAll("task/private/git-left", 0o700))
		one, err := g.repository(w)
		require.NoError(t, err)
		other, err := g.repository(w)
		require.NoError(t, err)
		require.NotEqual(t, one.rel, other.rel)
		for _, name := range []string{"config", "objects", "info"} {
			folder, err := os.OpenRoot(t.TempDir())
			require.NoError(t, err)
			defer folder.Close()
			require.NoError(t, folder.Symlink(filepath.Join(outside, name), name))
			require.Error(t, one.fill(folder, w, nil, ""), name)
		}
		left, err := os.ReadDir(outside)
		require.NoError(t, err)
		require.Empty(t, left)

		tree, err := g.Fetch(t.Context(), w)
		require.NoError(t, err)
		require.NoError(t, tree.Close())
		requireEmpty(t, w)
	})
}

// Arguments of processes are everybody's to read: those of git's programs have no password.
func TestPasswordsAreNoArguments(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "x")
	r.Commit()
	serve := r.Handler()
	ways(t, func(t *testing.T, change func(*Git)) {
		for _, login := range []string{"user:pa%24s-of-a-test-of-drover", "tok-of-a-test-of-drover"} {
			var asked, bad atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				user, password, ok := q.BasicAuth()
				if !ok {
					w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				asked.Add(1)
				lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
				for _, path := range lines {
					text, _ := os.ReadFile(path) // it may have ended
					if strings.Contains(string(text), "of-a-test-of-drover") {
						bad.Add(1)
					}
				}
				if user+":"+password != "user:pa$s-of-a-test-of-drover" && user+":"+password != "tok-of-a-test-of-drover:" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				serve.ServeHTTP(w, q)
			}))
			t.Cleanup(s.Close)
			g := newGit("127.0.0.0/8")
			change(g)
			files, err := fetched(t, g, Want{URL: strings.Replace(s.URL, "://", "://"+login+"@", 1) + "/repo.git"})
			require.NoError(t, err)
			require.Equal(t, map[string]string{"a": "x"}, files)
			require.Positive(t, asked.Load())
			require.Zero(t, bad.Load(), "processes that tell it")
		}
	})
}

// The tunnel is for who knows its secret.
func TestTunnelIsForGitAlone(t *testing.T) {
	t.Parallel()
	l, space, err := listen(false)
	require.NoError(t, err)
	require.Nil(t, space)
	far := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	t.Cleanup(far.Close)
	ctx, cancel := context.WithCancel(t.Context())
	tun := &tunnel{guard: newGit("127.0.0.0/8").cfg.Guard, clock: clock.Wall{}, listener: l, user: tunnelUser, secret: "right", most: 100}
	tun.serve(ctx, cancel)
	defer tun.close()
	host, port, err := net.SplitHostPort(far.Listener.Addr().String())
	require.NoError(t, err)
	for _, way := range []string{"git:wrong@", "root:right@", ":@"} {
		require.Error(t, connect(way+l.Addr().String(), host, port, strings.NewReader(""), os.Stderr), way)
	}
	require.NoError(t, tun.reason())
}

func TestNodeWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := fetched(t, newGit(), Want{URL: "https://example.org/x"})
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
	require.EqualError(t, err, "this node has no git: install it where the agent's PATH leads")
}

func TestWantsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, w := range []Want{
		{URL: "git://example.org/x"},
		{URL: "file:///x"},
		{URL: "/x"},
		{URL: "-x"},
		{URL: "ext::sh"},
		{URL: "x"},
		{URL: "https://x\ny"},
		{URL: "https://example.org/x", Ref: "-x"},
		{URL: "https://example.org/x", Ref: "a..b"},
		{URL: "https://example.org/x", Ref: "a:b"},
		{URL: "https://example.org/x", Path: "../x"},
		{URL: "https://example.org/x", Path: "/x"},
		{URL: "https://example.org/x", File: true},
		{URL: "ssh://example.org/x"},
		{URL: "ssh://-oProxyCommand=touch%20x/x", Key: "k"},
		{URL: "ssh://-oProxyCommand=touch/x", Key: "k"},
		{URL: "ssh://git@$(id)/x", Key: "k"},
		{URL: "ssh://git@%24%28id%29/x", Key: "k"},
		{URL: "ssh://%60id%60@example.org/x", Key: "k"},
		{URL: "git@a;id:x", Key: "k"},
		{URL: "git@[a:$(id)]:x", Key: "k"},
	} {
		_, err := fetched(t, newGit(), w)
		require.Error(t, err, "%+v", w)
		require.Contains(t, []drover.Code{drover.Invalid, drover.NotImplemented}, drover.CodeOf(err), "%+v", w)
	}
}
