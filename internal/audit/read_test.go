package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/cluster"
)

// written writes n requests, in files that are rotated, and returns what should be read back of them, the newest first.
func written(t *testing.T, n int, f File) (File, []string) {
	t.Helper()
	folder := t.TempDir()
	l, stop := running(t, filePlace(folder, f))
	var want []string
	for i := range n {
		e := change(fmt.Sprintf("/v1/job/%d", i))
		e.Stage, e.Status, e.AccessorID = Complete, 200, []string{"aaaa", "bbbb", "cccc"}[i%3]
		e.Allowed = i%3 != 2
		require.NoError(t, l.Record(e, true))
		want = append(want, e.Path)
	}
	stop()
	slices.Reverse(want)
	f.Path = filepath.Join(folder, "audit.log")
	return f, want
}

func paths(all []cluster.AuditRecord) (out []string) {
	for _, r := range all {
		out = append(out, r.Path)
	}
	return out
}

// All pages together are what was written, over rotated files, however small a page is, and what matches of it.
func TestARecordIsReadBackInPages(t *testing.T) {
	t.Parallel()
	f, want := written(t, 200, File{RotateBytes: 20_000})
	require.Greater(t, len(logs(t, filepath.Dir(f.Path))), 3)
	rapid.Check(t, func(rt *rapid.T) {
		q := cluster.AuditQuery{
			PerPage: rapid.IntRange(1, 50).Draw(rt, "page"), Accessor: rapid.SampledFrom([]string{"", "aa", "none"}).Draw(rt, "accessor"),
		}
		if rapid.Bool().Draw(rt, "refused") {
			q.Allowed = new(false)
		}
		var got []string
		before := uint64(0)
		for {
			p, err := ReadBack(f, q, before)
			require.NoError(rt, err)
			require.LessOrEqual(rt, len(p.Records), q.PerPage)
			got = append(got, paths(p.Records)...)
			if before = p.From; before <= 1 {
				break
			}
		}
		var match []string
		for i, path := range want {
			at := len(want) - 1 - i
			if (q.Accessor == "" || q.Accessor == "aa" && at%3 == 0) && (q.Allowed == nil || at%3 == 2) {
				match = append(match, path)
			}
		}
		require.Equal(rt, match, got)
	})
}

// A file of many megabytes is read from where it matters, and not whole.
func TestALargeFileIsReadInParts(t *testing.T) {
	t.Parallel()
	f, _ := written(t, 1, File{})
	var text strings.Builder
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 60_000 {
		fmt.Fprintf(&text, `{"created_at":%q,"event_type":"audit","payload":{"stage":"OperationComplete","request":{"endpoint":"/%d",`+
			`"object":%q},"decision":{"allowed":true}},"seq":%d,"hash":"x"}`+"\n",
			begun.Add(time.Duration(n)*time.Second).Format(time.RFC3339), n, strings.Repeat("x", 300), n+1)
	}
	require.NoError(t, os.WriteFile(f.Path, []byte(text.String()+`{"created_at":"20`), 0o600))
	p, err := ReadBack(f, cluster.AuditQuery{PerPage: 2}, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"/59999", "/59998"}, paths(p.Records), "what is being written is none yet")
	for _, q := range []cluster.AuditQuery{{PerPage: 2, Until: begun.Add(1000 * time.Second)}, {PerPage: 2}} {
		before := uint64(0)
		if q.Until.IsZero() {
			before = 1001
		}
		p, err = ReadBack(f, q, before)
		require.NoError(t, err)
		require.Equal(t, []string{"/999", "/998"}, paths(p.Records))
	}
	p, err = ReadBack(f, cluster.AuditQuery{PerPage: 2, Object: "/5"}, 40_000)
	require.NoError(t, err)
	require.Empty(t, p.Records, "they are further back than is read at once")
	require.Greater(t, p.From, uint64(10_000))
	p, err = ReadBack(f, cluster.AuditQuery{PerPage: 9, Since: begun.Add(59_998 * time.Second)}, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"/59999", "/59998"}, paths(p.Records))
	require.Zero(t, p.From)

	require.NoError(t, os.Remove(f.Path))
	p, err = ReadBack(f, cluster.AuditQuery{PerPage: 2}, 0)
	require.NoError(t, err)
	require.Empty(t, p.Records)
}
