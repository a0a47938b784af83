package gitfetch

import (
	"archive/tar"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/node/gitfetch/gittest"
)

// loopback is allowed here: servers of tests are nowhere else.
func newGit(allow ...string) *Git {
	g := &netguard.Guard{What: "the artifact's address", Key: "allow", Private: true}
	for _, p := range allow {
		g.Allow = append(g.Allow, netip.MustParsePrefix(p))
	}
	return New(Config{Guard: g, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
}

func rootOf(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func requireEmpty(t *testing.T, w Want) {
	t.Helper()
	left, _ := os.ReadDir(filepath.Join(w.Root.Name(), w.Folder)) // it may not be there
	require.Empty(t, left)
}

// fetched is the tree that is wanted: the files by their paths, of links what they lead to.
func fetched(t *testing.T, g *Git, w Want) (map[string]string, error) {
	t.Helper()
	w.Root, w.Folder = rootOf(t), "repositories"
	if w.Size == 0 {
		w.Size = 64 << 20
	}
	tree, err := g.Fetch(t.Context(), w)
	if err != nil {
		requireEmpty(t, w)
		return nil, err
	}
	defer func() {
		require.NoError(t, tree.Close())
		requireEmpty(t, w)
	}()
	files := map[string]string{}
	if w.File {
		data, err := io.ReadAll(tree)
		files[w.Path] = string(data)
		return files, err
	}
	for in := tar.NewReader(tree); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.ReadAll(tree)
			return files, err
		}
		if err != nil {
			return files, err
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return files, err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			files[h.Name] = string(data)
		case tar.TypeSymlink:
			files[h.Name] = "-> " + h.Linkname
		}
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "one\n")
	first := r.Commit()
	r.Write("a", "two\n")
	r.Write("sub/b", "b\n")
	second := r.Commit()
	r.Git("tag", "v1")
	r.Write("a", "three\n")
	r.Commit()
	url := r.Serve()
	for name, c := range map[string]struct {
		want  Want
		files map[string]string
	}{
		"head":          {Want{}, map[string]string{"a": "three\n", "sub/b": "b\n"}},
		"branch":        {Want{Ref: "main"}, map[string]string{"a": "three\n", "sub/b": "b\n"}},
		"tag":           {Want{Ref: "v1"}, map[string]string{"a": "two\n", "sub/b": "b\n"}},
		"commit":        {Want{Ref: first}, map[string]string{"a": "one\n"}},
		"short":         {Want{Ref: second[:10]}, map[string]string{"a": "two\n", "sub/b": "b\n"}},
		"folder":        {Want{Path: "sub"}, map[string]string{"b": "b\n"}},
		"file":          {Want{Path: "sub/b", File: true}, map[string]string{"sub/b": "b\n"}},
		"folder of ref": {Want{Path: "sub", Ref: "v1"}, map[string]string{"b": "b\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.URL = url
			files, err := fetched(t, newGit("127.0.0.0/8"), c.want)
			require.NoError(t, err)
			require.Equal(t, c.files, files)
		})
	}
}

// git that is ended in between, as where memory is short, may do better at the next try.
func TestGitThatIsEnded(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", strings.Repeat("x", 4<<20)) // more than a pipe takes
	r.Commit()
	url := r.Serve()
	ways(t, func(t *testing.T, change func(*Git)) {
		g := newGit("127.0.0.0/8")
		change(g)
		tree, err := g.Fetch(t.Context(), Want{URL: url, Root: rootOf(t), Folder: "x", Size: 64 << 20})
		require.NoError(t, err)
		defer tree.Close()
		require.NoError(t, tree.git.Cancel())
		_, err = io.Copy(io.Discard, tree)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, "git: signal: killed")
	})
}
