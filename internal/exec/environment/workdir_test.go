package environment_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// asked notes which paths come through.
type asked struct {
	execution.Files
	paths []string
}

func (a *asked) List(_ context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	a.paths = append(a.paths, r.Path)
	return nil, nil
}

func (a *asked) Read(_ context.Context, r execution.FileRequest) (i execution.FileInfo, body io.ReadCloser, err error) {
	a.paths = append(a.paths, r.Path)
	return i, nil, nil
}

func (a *asked) Apply(_ context.Context, changes []execution.FileChange) error {
	for _, c := range changes {
		a.paths = append(a.paths, c.Path)
	}
	return nil
}

func (a *asked) Write(_ context.Context, c execution.FileChange, _ io.Reader) error {
	a.paths = append(a.paths, c.Path)
	return nil
}

func (a *asked) Archive(_ context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	a.paths = append(a.paths, r.Path)
	return nil, nil
}

func (a *asked) Extract(_ context.Context, r execution.FileRequest, _ io.Reader) error {
	a.paths = append(a.paths, r.Path)
	return nil
}

// TestFilesStartWhereExecutionsDo: an environment's working directory counts for files, too.
func TestFilesStartWhereExecutionsDo(t *testing.T) {
	t.Parallel()
	a := &asked{}
	f := environment.Files(execution.Environment{WorkDir: "/work"}, a)
	_, err := f.List(t.Context(), execution.FileRequest{})
	require.NoError(t, err)
	_, _, err = f.Read(t.Context(), execution.FileRequest{Path: "/etc/x"})
	require.NoError(t, err)
	changes := []execution.FileChange{{Path: "./*", Delete: true}, {Path: "d/", Mkdir: true}, {Path: "a", Write: true}}
	require.NoError(t, f.Apply(t.Context(), changes))
	require.Equal(t, "a", changes[2].Path, "the caller's are its own")
	require.NoError(t, f.Write(t.Context(), execution.FileChange{Path: "../b"}, nil))
	_, err = f.Archive(t.Context(), execution.FileRequest{Path: "."})
	require.NoError(t, err)
	require.NoError(t, f.Extract(t.Context(), execution.FileRequest{Path: "e"}, nil))
	require.Equal(t, []string{"/work/", "/etc/x", "/work/./*", "/work/d/", "/work/a", "/work/../b", "/work/.", "/work/e"}, a.paths)
}
