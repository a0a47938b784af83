package hook

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/taskapi"
)

// TestTheTaskAPI: a job's task has a socket and its address. A warm runner has none, and one that cannot be made keeps no task from
// running.
func TestTheTaskAPI(t *testing.T) {
	t.Parallel()
	api := taskapi.New(taskapi.Deps{
		Handler: http.NotFoundHandler(), Admit: func(*http.Request) error { return nil }, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	r := newRequest(t)
	require.NoError(t, taskAPI{api}.Prestart(t.Context(), r))
	path := filepath.Join(r.Dirs.Secrets, "api.sock")
	require.Equal(t, "unix://"+path, r.Env.Vars()["NOMAD_UNIX_ADDR"])
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o666, info.Mode(), "it is not known who the user is")
	r.Close()
	r.API.Wait(t.Context())
	require.NoFileExists(t, path)

	for name, change := range map[string]func(r *Request){
		"no API":        nil,
		"a warm runner": func(r *Request) { r.Group.Pool = &drover.WarmPool{} },
		"no folders":    func(r *Request) { require.NoError(t, os.RemoveAll(r.Dirs.Secrets)) },
		"in the way":    func(r *Request) { require.NoError(t, os.MkdirAll(filepath.Join(r.Dirs.Secrets, "api.sock"), 0o700)) },
	} {
		r, of, told := newRequest(t), api, ""
		r.Emit = func(e *drover.TaskEvent) { told += e.DisplayMessage }
		if change == nil {
			of = nil
		} else {
			change(r)
		}
		require.NoError(t, taskAPI{of}.Prestart(t.Context(), r), name)
		require.Nil(t, r.API, name)
		require.NotContains(t, r.Env.Vars(), "NOMAD_UNIX_ADDR")
		require.Equal(t, name == "in the way", told != "", told)
		r.Close()
	}
}
