package artifact

import (
	"archive/tar"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/node/gitfetch"
)

func TestMain(m *testing.M) {
	gitfetch.Child()
	goleak.VerifyTestMain(m)
}

// loopback lets a test reach its own servers, which are nowhere else.
func loopback() *netguard.Guard {
	return &netguard.Guard{
		What: "the artifact's address", Key: "allow", Private: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
}

func newFetcher(t Timeouts, change ...func(*Config)) *Fetcher {
	cfg := Config{HTTP: loopback().Client(0), Size: 1 << 20, Unpacked: 1 << 20, Files: 100, Timeouts: t, Clock: clock.Wall{}}
	for _, c := range change {
		c(&cfg)
	}
	return New(cfg)
}

// withGit is a change for a fetcher that has git.
func withGit(c *Config) {
	c.Git = gitfetch.New(gitfetch.Config{Guard: loopback(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
}

// place gives the request a folder, in which its destination is local/ unless it says another one.
func place(t *testing.T, r *Request) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	r.Root, r.Local, r.Scratch = root, true, "web/private"
	if r.Path == "" {
		r.Path = "local"
	}
	return dir
}

// recoverable is what package hook makes of errors.
func recoverable(err error) bool {
	return !slices.Contains([]drover.Code{drover.Invalid, drover.Forbidden, drover.NotImplemented, drover.TooLarge}, drover.CodeOf(err))
}

// fetched is an artifact and what becomes of it.
type fetched struct {
	name     string
	artifact Request
	want     map[string]string // path in the folder → content
	err      string
	again    bool // recoverable
}

// fetchedFrom are artifacts of a server, and one of a file of this machine. sum is that of "hello".
func fetchedFrom(server, local, sum string) []fetched {
	return []fetched{
		{
			name: "plain", artifact: Request{Source: server + "/a.txt?checksum=" + sum},
			want: map[string]string{"local/a.txt": "hello"},
		},
		{
			name:     "file mode",
			artifact: Request{Source: server + "/a.txt", Mode: "file", Path: "local/sub/name"},
			want:     map[string]string{"local/sub/name": "hello"},
		},
		{
			name: "tar", artifact: Request{Source: server + "/x.tar.gz"},
			want: map[string]string{"local/d/f": "data of d/f", "local/l": "data of d/f"},
		},
		{
			name: "zip", artifact: Request{Source: server + "/y.zip", Path: "local/z"},
			want: map[string]string{"local/z/q/r": "data of q/r"},
		},
		{
			name: "packed stays packed",
			artifact: Request{
				Source: server + "/a.txt", Options: map[string]string{"archive": "false", "checksum": sum},
			},
			want: map[string]string{"local/a.txt": "hello"},
		},
		{
			name: "from disk", artifact: Request{Source: "file://" + local},
			want: map[string]string{"local/local.txt": "from disk"},
		},
		{
			name:     "wrong sum",
			artifact: Request{Source: server + "/a.txt", Options: map[string]string{"checksum": "md5:00"}},
			err:      "checksum",
		},
		{name: "leads out", artifact: Request{Source: server + "/evil.tar.gz"}, err: "leads out"},
		{name: "leads out by a link", artifact: Request{Source: server + "/link.tar.gz"}, err: "escapes", again: true},
		{name: "zip leads out", artifact: Request{Source: server + "/evil.zip"}, err: "leads out"},
		{name: "broken", artifact: Request{Source: server + "/broken.zip"}, err: "unpacking"},
		{name: "too big", artifact: Request{Source: server + "/big"}, err: "more than"},
		{
			name: "a bomb", artifact: Request{Source: server + "/bomb.tar.gz"},
			err: "unpacking: more than 1048576 bytes, which are what the node takes (client.artifact.decompression_size_limit)",
		},
		{
			name: "too many", artifact: Request{Source: server + "/many.tar.gz"},
			err: "unpacking: more than 100 files, which the node's client.artifact.decompression_file_count_limit allows",
		},
		{name: "not there", artifact: Request{Source: server + "/nope"}, err: "404", again: true},
		{
			name: "headers", artifact: Request{Source: server + "/a.txt", Headers: map[string]string{"X-Colour": "red"}},
			err: "404", again: true,
		},
		{name: "git", artifact: Request{Source: "git::https://example.org/x"}, err: "fetches nothing by git"},
		{name: "no scheme", artifact: Request{Source: "example.org/x"}, err: "needs https://, http://, git::"},
		{
			name: "folder of an archive", artifact: Request{Source: server + "/x.tar.gz//d"},
			want: map[string]string{"local/f": "data of d/f"},
		},
		{
			name: "folder of a zip file", artifact: Request{Source: server + "/y.zip//q?archive=zip"},
			want: map[string]string{"local/r": "data of q/r"},
		},
		{name: "no such folder", artifact: Request{Source: server + "/x.tar.gz//e"}, err: `the archive has no folder "e"`},
		{name: "folder of a file", artifact: Request{Source: server + "/a.txt//e"}, err: "a.txt is none"},
		{
			name: "slow", artifact: Request{Source: server + "/slow"}, again: true,
			err: "it takes longer than 100ms (client.artifact.http_read_timeout)",
		},
		{
			name: "an option of the server's", artifact: Request{Source: server + "/a.txt", Options: map[string]string{"colour": "red"}},
			err: "404", again: true,
		},
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"/a.txt": []byte("hello"),
		"/x.tar.gz": tarball(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "d/f", Typeflag: tar.TypeReg},
			tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "d/f"}, tar.Header{Name: "dev", Typeflag: tar.TypeChar}),
		"/y.zip":       zipped(t, "q/r"),
		"/evil.tar.gz": tarball(t, tar.Header{Name: "../../../evil", Typeflag: tar.TypeReg}),
		"/link.tar.gz": tarball(
			t, tar.Header{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, tar.Header{Name: "out/evil", Typeflag: tar.TypeReg},
		),
		"/evil.zip":    zipped(t, "../evil"),
		"/broken.zip":  []byte("nothing"),
		"/big":         make([]byte, 2<<20),
		"/bomb.tar.gz": bomb(t, tar.TypeReg, 2<<20),
		"/many.tar.gz": tarball(t, slices.Repeat([]tar.Header{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}}, 101)...),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, ok := files[q.URL.Path]
		if q.URL.Path == "/slow" {
			<-q.Context().Done()
			return
		}
		if !ok || q.Header.Get("X-Colour") == "red" || q.URL.Query().Get("colour") == "red" {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	f := newFetcher(Timeouts{})
	slow := newFetcher(Timeouts{HTTP: 100 * time.Millisecond}) // whenever it comes, the error is the same
	local := filepath.Join(t.TempDir(), "local.txt")
	require.NoError(t, os.WriteFile(local, []byte("from disk"), 0o600))
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("hello")))

	for _, test := range fetchedFrom(server.URL, local, sum) {
		t.Run(test.name, func(t *testing.T) {
			r := test.artifact
			dir := place(t, &r)
			from := f
			if test.name == "slow" {
				from = slow
			}
			err := from.Fetch(t.Context(), r)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				require.Equal(t, test.again, recoverable(err), "%v", err)
				for _, name := range []string{"a.txt", "big"} {
					require.NoFileExists(t, filepath.Join(dir, "local", name), "half a file, or one with another checksum")
				}
				return
			}
			require.NoError(t, err)
			for path, want := range test.want {
				got, err := os.ReadFile(filepath.Join(dir, path))
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
			left, err := filepath.Glob(filepath.Join(dir, ".artifact-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
