package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/gitfetch/gittest"
)

// TestRepositoryAsArtifact: the agent executes itself again to become git, and the task finds the files of the commit. The first
// agent is killed while a server holds its git: nothing of that is left, and the next one fetches anew.
func TestRepositoryAsArtifact(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("say/file", "hello from a repository\n")
	first := r.Commit()
	r.Write("say/file", "another commit\n")
	r.Commit()
	git := r.Handler()
	var holds atomic.Bool
	holds.Store(true)
	asked := make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if holds.Load() {
			asked <- struct{}{}
			<-q.Context().Done()
			return
		}
		git.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	args := config(t, dir, "server {\n  enabled = true\n}\n"+clientBlock("enabled = true\n  artifact {\n    allow = [\"127.0.0.0/8\"]\n  }"))
	a := start(t, args...)
	register(t, a.nomad(), artifactJob("repository", "git::"+s.URL+"/repo.git//say?ref="+first))
	<-asked
	a.PullThePlug()
	holds.Store(false)
	eventually(t, "git to end with its agent", func() (bool, string) {
		left := withVariable("DROVER_TUNNEL")
		return left == "", left
	})
	a = start(t, args...)
	c := a.nomad()
	done := allocation(t, c, "repository", "complete")
	require.Equal(t, "hello from a repository\n", logs(t, c, done.ID, "stdout"))
	left, err := filepath.Glob(filepath.Join(dir, "*", "*", ".artifact*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// withVariable lists the processes that have an environment variable of that name.
func withVariable(name string) (list string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(text), "\x00"+name+"=") {
			list += filepath.Base(filepath.Dir(path)) + " "
		}
	}
	return list
}
