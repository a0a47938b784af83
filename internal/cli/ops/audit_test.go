package ops

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
)

// A file is checked without an agent; what was changed is an error with file and line.
func TestVerifyingAnAudit(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.log")
	d := audit.Deps{Clock: clock.Wall{}, IDs: id.Random{}, Log: slog.New(slog.DiscardHandler)}
	s, err := audit.Open(t.Context(), audit.Place{Name: "a", Enforced: true, Folder: folder, File: &audit.File{Path: path}}, d)
	require.NoError(t, err)
	l := audit.New(audit.Config{}, d, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.Run(ctx) }() // ends with cancel
	require.NoError(t, l.Record(&audit.Event{Stage: audit.Received, Class: audit.Change, Path: "/v1/jobs", Allowed: true}, true))
	cancel()
	<-done
	l.Close()

	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := auditCommand(&term.App{Out: &out, Err: &out, Clock: clock.Wall{}})
		c.SetArgs(append([]string{"verify"}, args...))
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(&out)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("--key", filepath.Join(folder, "a.key"), "--head", filepath.Join(folder, "a.head"), path)
	require.NoError(t, err)
	require.Contains(t, out, "lines up to 3 are attested")
	require.Contains(t, out, "line 3 is there")
	out, err = run(path)
	require.NoError(t, err)
	require.Contains(t, out, "not checked: no -key")
	require.Contains(t, out, "not checked: no -head")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte("/v1/jobs"), []byte("/v1/jobz"), 1), 0o600))
	_, err = run(path)
	require.ErrorContains(t, err, "a.log:2: the line, or the end of the one before, was changed")
	_, err = run("--head", "x", path)
	require.ErrorContains(t, err, "no number of a line and its digest")
	_, err = run("--key", path, path)
	require.ErrorContains(t, err, "it is no key of an audit")
}
