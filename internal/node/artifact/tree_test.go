package artifact

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/gitfetch/gittest"
)

// requireEmpty checks that nothing is left of a fetch.
func requireEmpty(t *testing.T, folder string) {
	t.Helper()
	left, _ := os.ReadDir(folder) // what failed early did not make it
	require.Empty(t, left)
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "one\n")
	first := r.Commit()
	r.Write("sub/run.sh", "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(r.Dir, "sub/run.sh"), 0o755))
	r.Write("sub/dir/b", "b\n")
	r.Commit()
	url := "git::" + r.Serve()
	sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("#!/bin/sh\n")))
	for _, c := range []fetched{
		{name: "all", artifact: Request{Source: url}, want: map[string]string{"local/a": "one\n", "local/sub/dir/b": "b\n"}},
		{
			name: "commit, as an option", artifact: Request{Source: url, Options: map[string]string{"ref": first, "depth": "3"}},
			want: map[string]string{"local/a": "one\n"},
		},
		{name: "folder", artifact: Request{Source: url + "//sub?ref=main"}, want: map[string]string{"local/dir/b": "b\n"}},
		{
			name: "file", artifact: Request{Source: url + "//sub/run.sh?checksum=" + sum, Mode: "file", Path: "local/x"},
			want: map[string]string{"local/x": "#!/bin/sh\n"},
		},
		{name: "wrong sum", artifact: Request{Source: url + "//a?checksum=md5:00", Mode: "file"}, err: "checksum is"},
		{name: "sum of all", artifact: Request{Source: url + "?checksum=md5:00"}, err: "name the commit in ref"},
		{name: "no such ref", artifact: Request{Source: url + "?ref=nope"}, err: "git: couldn't find remote ref nope", again: true},
		{name: "no such commit", artifact: Request{Source: url + "?ref=" + strings.Repeat("ab", 20)}, err: "git:", again: true},
		{name: "a ref that is an option", artifact: Request{Source: url + "?ref=--upload-pack=x"}, err: "ref"},
		{name: "no such folder", artifact: Request{Source: url + "//nope"}, err: `the repository has no folder "nope"`},
		{name: "no such file", artifact: Request{Source: url + "//nope", Mode: "file"}, err: `the repository has no file "nope"`},
		{name: "a folder as a file", artifact: Request{Source: url + "//sub", Mode: "file"}, err: `"sub" of the repository is no file`},
		{name: "no such repository", artifact: Request{Source: url + "x"}, err: "git: ", again: true},
		{name: "depth", artifact: Request{Source: url + "?depth=all"}, err: `option depth: "all" is no number of commits`},
		{name: "headers", artifact: Request{Source: url, Headers: map[string]string{"a": "b"}}, err: "headers: git takes none"},
		{name: "key", artifact: Request{Source: url + "?sshkey=!"}, err: "option sshkey: is no base64"},
		{name: "ssh without a key", artifact: Request{Source: "git::ssh://git@127.0.0.1/x"}, err: "needs the option sshkey"},
		{name: "a program", artifact: Request{Source: "git::ext::sh -c touch% /tmp/x"}, err: `not by "ext"`},
		{name: "the node's", artifact: Request{Source: "git::" + r.Dir}, err: "want https://, http://, ssh:// or user@host:path"},
		{name: "the machine's", artifact: Request{Source: "git::http://169.254.169.254/x"}, err: "169.254.169.254 is a link-local address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := place(t, &c.artifact)
			err := newFetcher(Timeouts{}, withGit).Fetch(t.Context(), c.artifact)
			requireEmpty(t, filepath.Join(dir, c.artifact.Scratch))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, c.again, recoverable(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.NoDirExists(t, filepath.Join(dir, "local/.git"))
			for path, want := range c.want {
				got, err := os.ReadFile(filepath.Join(dir, path))
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
			if c.name == "file" {
				info, err := os.Stat(filepath.Join(dir, "local/x"))
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
			}
		})
	}
}

// What a repository holds does nothing on the node: no link leads out, no hook, filter or attribute is heeded.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	outside := filepath.Join(t.TempDir(), "outside")
	r.Write(".gitattributes", "secret export-ignore\n*.txt filter=evil export-subst\n*.crlf text eol=crlf\nu working-tree-encoding=UTF-16\n")
	r.Write("secret", "s")
	r.Write("a.txt", "$Format:%H$\n")
	r.Write("b.crlf", "x\n")
	r.Write("hooks/post-checkout", "#!/bin/sh\ntouch "+outside+"\n")
	r.Write("config", "[core]\n\tfsmonitor = touch "+outside+"\n")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(r.Dir, "link")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(r.Dir, "out")))
	r.Commit()
	req := Request{Source: "git::" + r.Serve()}
	dir := place(t, &req)
	require.NoError(t, newFetcher(Timeouts{}, withGit).Fetch(t.Context(), req))
	for path, want := range map[string]string{"secret": "s", "a.txt": "$Format:%H$\n", "b.crlf": "x\n"} {
		got, err := os.ReadFile(filepath.Join(dir, "local", path))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	link, err := os.Readlink(filepath.Join(dir, "local/link"))
	require.NoError(t, err)
	require.Equal(t, "/etc/passwd", link, "for the task it is a link of its own")
	require.NoFileExists(t, outside)

	// A tree in which a folder comes below a link of the same repository, as no git makes one.
	blob := r.Git("hash-object", "-w", "a.txt")
	inner := tree(t, r, "100644 blob "+blob+"\tevil")
	both := tree(t, r, "120000 blob "+stored(t, r, outside)+"\tx", "040000 tree "+inner+"\tx")
	commit := r.Git("commit-tree", "-m", "x", both)
	r.Git("branch", "hostile", commit)
	req = Request{Source: "git::" + r.Serve() + "?ref=hostile"}
	place(t, &req)
	err = newFetcher(Timeouts{}, withGit).Fetch(t.Context(), req)
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(outside, "evil"))
}

// tree makes a tree of such lines, whatever they are.
func tree(t *testing.T, r *gittest.Repository, lines ...string) string {
	t.Helper()
	var raw strings.Builder
	for _, l := range lines {
		head, name, _ := strings.Cut(l, "\t")
		fields := strings.Fields(head)
		fmt.Fprintf(&raw, "%s %s\x00", strings.TrimLeft(fields[0], "0"), name)
		var sum [20]byte
		for i := range sum {
			_, err := fmt.Sscanf(fields[2][2*i:2*i+2], "%02x", &sum[i])
			require.NoError(t, err)
		}
		raw.Write(sum[:])
	}
	path := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.WriteFile(path, []byte(raw.String()), 0o600))
	return r.Git("hash-object", "-t", "tree", "--literally", "-w", path)
}

// stored stores a text, and returns its name.
func stored(t *testing.T, r *gittest.Repository, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "blob")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return r.Git("hash-object", "-w", path)
}

func TestRepositoriesAreBounded(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("zeros", strings.Repeat("\x00", 4<<20)) // small as it comes
	r.Commit()
	r.Git("checkout", "--quiet", "--orphan", "large")
	r.Git("rm", "-rf", "--quiet", ".")
	noise := sha256.Sum256(nil)
	var text strings.Builder
	for range 1 << 16 {
		noise = sha256.Sum256(noise[:])
		text.Write(noise[:])
	}
	r.Write("noise", text.String())
	r.Commit()
	r.Git("checkout", "--quiet", "--orphan", "many")
	r.Git("rm", "-rf", "--quiet", ".")
	for i := range 101 {
		r.Write(fmt.Sprint("f", i), "x")
	}
	r.Commit()
	url := r.Serve()
	for ref, says := range map[string]string{
		"main":  "unpacking: more than 1048576 bytes, which are what the node takes (client.artifact.decompression_size_limit)",
		"large": "the server sends more than 1048576 bytes, which are what the node takes (client.artifact.http_max_size)",
		"many":  "unpacking: more than 100 files, which the node's client.artifact.decompression_file_count_limit allows",
	} {
		req := Request{Source: "git::" + url + "?ref=" + ref}
		dir := place(t, &req)
		err := newFetcher(Timeouts{}, withGit).Fetch(t.Context(), req)
		require.Equal(t, drover.TooLarge, drover.CodeOf(err), "%s: %v", ref, err)
		require.ErrorContains(t, err, says)
		requireEmpty(t, filepath.Join(dir, req.Scratch))
	}
}
