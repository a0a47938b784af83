package artifact

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/gitfetch/gittest"
)

// module commits a submodule at the path, with more lines in .gitmodules.
func module(r *gittest.Repository, at, address, commit, more string) {
	text, _ := os.ReadFile(filepath.Join(r.Dir, ".gitmodules")) // the first one makes it
	r.Write(".gitmodules", string(text)+"[submodule \"m."+at+"\"]\n\tpath = "+at+"\n\turl = "+address+"\n"+more)
	r.Git("add", ".gitmodules")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+at)
	r.Git("commit", "--quiet", "--message=module")
}

// As on Nomad, submodules come along, those of submodules, too, at the commits that the repository names.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	inner, middle, outer := gittest.New(t), gittest.New(t), gittest.New(t)
	inner.Write("c", "wanted\n")
	commit := inner.Commit()
	inner.Write("c", "newer\n")
	inner.Commit()
	mux := http.NewServeMux()
	for name, r := range map[string]*gittest.Repository{"inner": inner, "middle": middle, "outer": outer} {
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, r.Handler()))
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	middle.Write("b", "b\n")
	middle.Commit()
	module(middle, "deep/inner", s.URL+"/inner/repo.git", commit, "")
	outer.Write("a", "a\n")
	outer.Write("folder/x", "x\n")
	outer.Commit()
	module(outer, "folder/middle", "../../middle/repo.git", middle.Git("rev-parse", "HEAD"), "\tupdate = merge\n")
	module(outer, "never", "ext::no", strings.Repeat("1", 40), "\tupdate = none\n")
	for source, want := range map[string]map[string]string{
		"": {
			"a": "a\n", "folder/x": "x\n", "folder/middle/b": "b\n", "folder/middle/deep/inner/c": "wanted\n",
		},
		"//folder": {"x": "x\n", "middle/b": "b\n", "middle/deep/inner/c": "wanted\n"},
	} {
		req := Request{Source: "git::" + s.URL + "/outer/repo.git" + source}
		dir := place(t, &req)
		require.NoError(t, newFetcher(Timeouts{}, withGit).Fetch(t.Context(), req))
		requireEmpty(t, filepath.Join(dir, req.Scratch))
		for path, content := range want {
			got, err := os.ReadFile(filepath.Join(dir, "local", path))
			require.NoError(t, err)
			require.Equal(t, content, string(got), path)
		}
		require.NoDirExists(t, filepath.Join(dir, "local/folder/middle/.git"))
	}
	req := Request{Source: "git::" + s.URL + "/outer/repo.git"}
	place(t, &req)
	err := newFetcher(Timeouts{}, withGit, func(c *Config) { c.Files = 8 }).Fetch(t.Context(), req)
	require.ErrorContains(t, err, "unpacking: more than 8 files", "all together have the bounds of one archive")
}

// What a repository says of its submodules leads nowhere that an artifact may not come from, and starts nothing.
func TestHostileSubmodules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ address, more, says string }{
		"a program":           {"ext::sh -c touch% OUTSIDE", "", `submodule "sub": repositories are fetched by https, http and ssh, not`},
		"a file of the node":  {"/etc", "", `submodule "sub": repository "/etc": want https://`},
		"the machine's":       {"http://169.254.169.254/x", "", "169.254.169.254 is a link-local address"},
		"an option":           {"--upload-pack=touch", "", `submodule "sub": repository "--upload-pack=touch": is no address`},
		"above the server":    {"../../../../x", "", "leads above the server of"},
		"ssh without a key":   {"git@127.0.0.1:x", "", `submodule "sub": a repository by ssh needs the option sshkey`},
		"an update":           {"SELF", "\tupdate = !touch OUTSIDE\n", "git:"}, // the commit is not there
		"no address":          {"", "", `submodule "sub": .gitmodules has no address for it`},
		"too long to be read": {strings.Repeat("x", 1<<17), "", "reading what git says of the repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := filepath.Join(t.TempDir(), "outside")
			r := gittest.New(t)
			r.Write("a", "a")
			r.Commit()
			self := r.Serve()
			fill := strings.NewReplacer("OUTSIDE", outside, "SELF", self)
			module(r, "sub", fill.Replace(c.address), strings.Repeat("1", 40), fill.Replace(c.more))
			req := Request{Source: "git::" + self}
			dir := place(t, &req)
			require.ErrorContains(t, newFetcher(Timeouts{}, withGit).Fetch(t.Context(), req), c.says)
			requireEmpty(t, filepath.Join(dir, req.Scratch))
			require.NoFileExists(t, outside)
		})
	}
}

// A tree that has a link where a submodule belongs gets nothing written through it.
func TestSubmodulesBehindLinks(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "a")
	commit := r.Commit()
	self := r.Serve()
	modules := stored(t, r, "[submodule \"x\"]\n\tpath = x\n\turl = "+self+"\n")
	link := stored(t, r, "../other")
	both := tree(t, r, "100644 blob "+modules+"\t.gitmodules", "160000 commit "+commit+"\tx", "120000 blob "+link+"\tx")
	r.Git("branch", "hostile", r.Git("commit-tree", "-m", "x", both))
	req := Request{Source: "git::" + self + "?ref=hostile"}
	dir := place(t, &req)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "other"), 0o755))
	require.Error(t, newFetcher(Timeouts{}, withGit).Fetch(t.Context(), req))
	left, err := os.ReadDir(filepath.Join(dir, "other"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// No repository makes the node ask for others without an end.
func TestTooManySubmodules(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "a")
	commit := r.Commit()
	self := r.Serve()
	var text strings.Builder
	for i := range 101 {
		at := "m" + strings.Repeat("x", i)
		text.WriteString("[submodule \"" + at + "\"]\n\tpath = " + at + "\n\turl = " + self + "\n")
		r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+at)
	}
	r.Write(".gitmodules", text.String())
	r.Git("add", ".gitmodules")
	r.Git("commit", "--quiet", "--message=many")
	req := Request{Source: "git::" + self}
	place(t, &req)
	err := newFetcher(Timeouts{}, withGit, func(c *Config) { c.Files = 1000 }).Fetch(t.Context(), req)
	require.ErrorContains(t, err, "the repository has more than 100 submodules")
}
