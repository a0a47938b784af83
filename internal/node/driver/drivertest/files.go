package drivertest

import (
	"bytes"
	"io"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// fileChecks are the promises of driver.Filer, tried in a warm runner.
func fileChecks() []check {
	return []check{
		{"files with any name", fileNames, nil},
		{"file changes", fileChanges, nil},
		{"file errors", fileErrors, nil},
		{"files as a stream", fileStreams, nil},
		{"files as an archive", fileArchive, nil},
		{"links are not followed when listing", fileLinks, []Ability{Shell, Links}},
	}
}

// folder is a place in the runner that is free to use.
const folder = "/tmp/drivertest"

// work returns an empty folder of this test's own.
func (s *suite) work(f execution.Files) string {
	dir := folder + "-" + s.alloc
	require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{{Path: dir, Delete: true}, {Path: dir, Mkdir: true, Mode: 0o777}}))
	return dir
}

// files returns the files of a new warm runner, an empty folder in it, and what removes that folder. Drivers without isolation share the
// machine's /tmp, so the test must clean up.
func (s *suite) files() (execution.Files, string, func()) {
	s.t.Helper()
	f := s.pool().(driver.Filer).Files()
	dir := s.work(f)
	return f, dir, func() {
		require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{{Path: dir, Delete: true}}))
	}
}

// listed gives each entry as "type path", sorted, so that files come before folders and the order of the walk does not matter.
func listed(list []execution.FileInfo) (p []string) {
	for _, f := range list {
		p = append(p, f.Type+" "+f.Path)
	}
	slices.Sort(p)
	return p
}

// read returns a file's description and content, and fails the test on any error.
func (s *suite) read(f execution.Files, r execution.FileRequest) (execution.FileInfo, []byte) {
	s.t.Helper()
	info, body, err := f.Read(s.t.Context(), r)
	require.NoError(s.t, err)
	b, err := io.ReadAll(body)
	require.NoError(s.t, err)
	require.NoError(s.t, body.Close())
	return info, b
}

// fileNames: a name is any bytes but "/" and NUL. None is taken for an option, a pattern, a variable or the end of a line, and names that
// are not UTF-8 come back unchanged.
func fileNames(s *suite) {
	f, dir, done := s.files()
	defer done()
	names := []string{"new\nline", `quo"te'`, "-rf", "\xff\xfe", "a b", "foo:", ".hidden", "$HOME", "*"}
	var want []string
	for _, n := range names {
		require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{{Path: dir + "/" + n, Write: true, Data: []byte(n)}}))
		want = append(want, "- "+n)
	}
	slices.Sort(want)
	list, err := f.List(s.t.Context(), execution.FileRequest{Path: dir})
	require.NoError(s.t, err)
	require.Equal(s.t, want, listed(list))
	for _, n := range names {
		info, b := s.read(f, execution.FileRequest{Path: dir + "/" + n})
		require.Equal(s.t, n, string(b))
		require.Equal(s.t, int64(len(n)), info.Size)
	}
}

// fileChanges: changes of one call are applied in order, missing parents are made, and "*" in a deletion spares names with a leading dot.
// Deleting what is not there is no error.
func fileChanges(s *suite) {
	f, dir, done := s.files()
	defer done()
	require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{
		{Path: dir + "/deep/er/file", Write: true, Data: []byte("1")},
		{Path: dir + "/deep/er/file", Write: true, Data: []byte("two"), Mode: 0o600},
		{Path: dir + "/plain", Write: true},
		{Path: dir + "/made/", Mkdir: true},
		{Path: dir + "/.dot", Write: true},
	}))
	list, err := f.List(s.t.Context(), execution.FileRequest{Path: dir, Recursive: true})
	require.NoError(s.t, err)
	require.Equal(s.t, []string{"- .dot", "- deep/er/file", "- plain", "d deep", "d deep/er", "d made"}, listed(list))
	modes := map[string]uint32{}
	for _, i := range list {
		modes[i.Path] = i.Mode
		require.NotEmpty(s.t, i.Owner)
	}
	// A mode that was given is kept; without one a file gets 0744, and a folder 1777, so that every user of the task can work in it.
	require.Equal(s.t, uint32(0o600), modes["deep/er/file"])
	require.Equal(s.t, uint32(0o744), modes["plain"])
	require.Equal(s.t, uint32(0o1777), modes["made"])
	_, b := s.read(f, execution.FileRequest{Path: dir + "/deep/er/file", Offset: 1, Length: 1, Privileged: true})
	require.Equal(s.t, "w", string(b))
	require.NoError(
		s.t,
		f.Apply(s.t.Context(), []execution.FileChange{{Path: dir + "/*", Delete: true}, {Path: dir + "/not there", Delete: true}}),
	)
	list, err = f.List(s.t.Context(), execution.FileRequest{Path: dir})
	require.NoError(s.t, err)
	require.Equal(s.t, []string{"- .dot"}, listed(list))
}

// fileErrors: what is missing is NotFound; a folder in a file's place, or a change that changes nothing, is Invalid.
func fileErrors(s *suite) {
	f, dir, done := s.files()
	defer done()
	ctx := s.t.Context()
	_, err := f.List(ctx, execution.FileRequest{Path: "/no/such"})
	require.Equal(s.t, drover.NotFound, drover.CodeOf(err))
	_, _, err = f.Read(ctx, execution.FileRequest{Path: dir + "/no"})
	require.Equal(s.t, drover.NotFound, drover.CodeOf(err))
	_, _, err = f.Read(ctx, execution.FileRequest{Path: dir})
	require.Equal(s.t, drover.Invalid, drover.CodeOf(err))
	require.Equal(s.t, drover.Invalid, drover.CodeOf(f.Apply(ctx, []execution.FileChange{{Path: dir, Write: true}})))
	require.Equal(s.t, drover.Invalid, drover.CodeOf(f.Apply(ctx, []execution.FileChange{{Path: "x"}})))
	_, err = f.Archive(ctx, execution.FileRequest{Path: "/no/such"})
	require.Equal(s.t, drover.NotFound, drover.CodeOf(err))
}

// fileStreams writes more than one frame of the protocol in both ways there are; the 7 bytes beyond 5 MB make the last frame a short one.
func fileStreams(s *suite) {
	f, dir, done := s.files()
	defer done()
	data := make([]byte, 5<<20+7)
	for i := range data {
		data[i] = byte(i*13 + i>>8)
	}
	require.NoError(s.t, f.Write(s.t.Context(), execution.FileChange{Path: dir + "/streamed"}, bytes.NewReader(data)))
	require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{{Path: dir + "/applied", Write: true, Data: data}}))
	for _, n := range []string{"streamed", "applied"} {
		info, b := s.read(f, execution.FileRequest{Path: dir + "/" + n, Privileged: true})
		require.True(s.t, bytes.Equal(data, b))
		require.Equal(s.t, int64(len(data)), info.Size)
	}
}

// fileArchive: an archive's paths are relative to the folder it was made of, so that it can be extracted elsewhere.
func fileArchive(s *suite) {
	f, dir, done := s.files()
	defer done()
	require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{
		{Path: dir + "/src/a", Write: true, Data: []byte("aa")}, {Path: dir + "/src/deep/b", Write: true, Data: []byte("bb")},
	}))
	tar, err := f.Archive(s.t.Context(), execution.FileRequest{Path: dir + "/src", Privileged: true})
	require.NoError(s.t, err)
	require.NoError(s.t, f.Extract(s.t.Context(), execution.FileRequest{Path: dir + "/dst", Privileged: true}, tar))
	require.NoError(s.t, tar.Close())
	list, err := f.List(s.t.Context(), execution.FileRequest{Path: dir + "/dst", Recursive: true})
	require.NoError(s.t, err)
	require.Equal(s.t, []string{"- a", "- deep/b", "d deep"}, listed(list))
}

// fileLinks: listing and deleting treat a symbolic link as itself. A recursive one that followed it would list, or remove, the machine's
// /etc.
func fileLinks(s *suite) {
	h := s.pool()
	f := h.(driver.Filer).Files()
	dir := s.work(f)
	r := s.exec(h, sh("ln -s /etc "+dir+"/link && ln -s /no/such "+dir+"/broken"))
	require.Zero(s.t, r.receipt.ExitCode, string(r.stderr))
	list, err := f.List(s.t.Context(), execution.FileRequest{Path: dir, Recursive: true})
	require.NoError(s.t, err)
	require.Equal(s.t, []string{"l broken", "l link"}, listed(list))
	require.NoError(s.t, f.Apply(s.t.Context(), []execution.FileChange{{Path: dir, Delete: true}}))
	_, err = f.List(s.t.Context(), execution.FileRequest{Path: "/etc"})
	require.NoError(s.t, err, "the link's target is untouched")
}
