package poseidon

import (
	"context"
	"errors"
	"mime"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// The nine letters of ls -l, with the special bits in place of x, and in capitals where there is no x.
func TestPermissionsAreThoseOfLs(t *testing.T) {
	t.Parallel()
	for mode, want := range map[uint32]string{
		0: "---------", 0o644: "rw-r--r--", 0o755: "rwxr-xr-x", 0o777: "rwxrwxrwx", 0o001: "--------x",
		0o4755: "rwsr-xr-x", 0o4644: "rwSr--r--", 0o2755: "rwxr-sr-x", 0o2644: "rw-r-Sr--", 0o1777: "rwxrwxrwt",
		0o1666: "rw-rw-rwT", 0o7777: "rwsrwsrwt", 0o7000: "--S--S--T",
	} {
		require.Equal(t, want, permissions(mode), "%o", mode)
	}
}

// Whatever a file is called, a client reads its name out of the header as it is; nothing in it begins another header.
func TestDispositionsCarryAnyName(t *testing.T) {
	t.Parallel()
	require.Equal(t, `attachment; filename="a b.txt"`, disposition("a b.txt"))
	require.Equal(t, `attachment; filename="say \"x\" \\ y"`, disposition(`say "x" \ y`))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 20, -1).Draw(t, "name")
		header := disposition(name)
		require.False(t, strings.ContainsAny(header, "\r\n\x00"), "%q", header)
		kind, params, err := mime.ParseMediaType(header)
		require.NoError(t, err, "%q", header)
		require.Equal(t, "attachment", kind)
		require.Equal(t, name, params["filename"], "%q", header)
	})
}

func TestChangesAreDeletesThenCopies(t *testing.T) {
	t.Parallel()
	changes, err := changesOf(updateRequest{
		Delete: []string{"./*", "a//b/../c", "/abs/"},
		Copy:   []copiedFile{{Path: "dir/"}, {Path: "./x/../y", Content: []byte("z")}, {Path: "empty"}},
	})
	require.NoError(t, err)
	require.Equal(t, []execution.FileChange{
		{Path: "./*", Delete: true},
		{Path: "a/c", Delete: true},
		{Path: "/abs", Delete: true},
		{Path: "dir", Mkdir: true},
		{Path: "y", Write: true, Data: []byte("z")},
		{Path: "empty", Write: true},
	}, changes)
	for _, bad := range []updateRequest{
		{Delete: []string{""}}, {Delete: []string{"a\x00"}}, {Copy: []copiedFile{{}}}, {Copy: []copiedFile{{Path: "a\x00b"}}},
	} {
		_, err := changesOf(bad)
		var refusal *reply
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, 400, refusal.status)
	}
}

// changing makes changes, but for those whose path it knows an error of.
type changing struct {
	execution.Files
	fails map[string]error
	made  []string
}

func (c *changing) Apply(_ context.Context, changes []execution.FileChange) error {
	for _, x := range changes {
		if err := c.fails[x.Path]; err != nil {
			return err
		}
		c.made = append(c.made, x.Path)
	}
	return nil
}

// As with tar, one file that cannot be written does not keep the others from being.
func TestOneBadFileKeepsNoOther(t *testing.T) {
	t.Parallel()
	changes := []execution.FileChange{{Path: "a", Delete: true}, {Path: "b", Write: true}, {Path: "c", Write: true}}
	forbidden := drover.Errorf(drover.Forbidden, "not yours")
	for name, c := range map[string]struct {
		fails map[string]error
		made  []string
		says  []string
	}{
		"all is well":       {nil, []string{"a", "b", "c"}, nil},
		"a file":            {map[string]error{"b": forbidden}, []string{"a", "a", "c"}, []string{"copy: Cannot open: not yours"}},
		"a delete":          {map[string]error{"a": forbidden}, []string{"b", "c"}, []string{"not yours"}},
		"all of them":       {map[string]error{"a": forbidden, "b": forbidden, "c": forbidden}, nil, []string{"not yours", "copy: Cannot open"}},
		"the runner itself": {map[string]error{"a": drover.Errorf(drover.Gone, "runner gone")}, nil, []string{"runner gone"}},
		"the runner, later": {
			map[string]error{"a": forbidden, "b": drover.Errorf(drover.Unavailable, "node away")}, nil, []string{"node away"},
		},
	} {
		f := &changing{fails: c.fails}
		err := applyAll(t.Context(), f, changes)
		require.Equal(t, c.made, f.made, name)
		if c.says == nil {
			require.NoError(t, err, name)
		}
		for _, text := range c.says {
			require.ErrorContains(t, err, text, name)
		}
	}
	require.True(t, ofFile(errors.New("odd")), "what has no code is of the file")
}

func TestSmallThings(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{".a": true, "a/.b": true, "a.b": false, "a/b.": false, "..": true} {
		require.Equal(t, want, hidden(execution.FileInfo{Path: path}), path)
	}
	for text, want := range map[string]bool{"true": true, "1": true, "false": false, "": false, "perhaps": false} {
		require.Equal(t, want, truthy(url.Values{"k": {text}}, "k"), text)
	}
	require.False(t, truthy(url.Values{}, "k"))
}
