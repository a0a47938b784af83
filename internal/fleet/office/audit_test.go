package office

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
)

func all(*fleet.Audit) bool { return true }

func TestTheAuditLogSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "fleet")
	a, err := OpenAudit(dir, clock.Wall{})
	require.NoError(t, err)
	began := time.Now().UTC()
	a.Add(fleet.Audit{Pool: "p", What: "one"})
	a.Add(fleet.Audit{Pool: "p", What: "two", At: began.Add(-time.Hour).In(time.FixedZone("x", 3600))})
	a.Close()
	a.Close()
	a.Add(fleet.Audit{What: "after the end"})
	file := filepath.Join(dir, "audit.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"What":"torn`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	a, err = OpenAudit(dir, clock.Wall{})
	require.NoError(t, err)
	defer a.Close()
	list := a.List(all, 10)
	require.Len(t, list, 2)
	require.Equal(t, "one", list[0].What)
	require.False(t, list[0].At.Before(began), "it has the time of now")
	require.Equal(t, began.Add(-time.Hour), list[1].At)
	a.Add(fleet.Audit{What: "behind the torn line"})
	again, err := OpenAudit(dir, clock.Wall{})
	require.NoError(t, err)
	defer again.Close()
	require.Len(t, again.List(all, 10), 3)
	require.Equal(t, "behind the torn line", again.List(all, 1)[0].What)
	require.Len(t, list, 2)
	require.Equal(t, "two", list[1].What, "the newest")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestTheAuditLogIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := OpenAudit(dir, clock.Wall{})
	require.NoError(t, err)
	defer a.Close()
	a.size = 100_000
	for n := range 2*auditKept + 10 {
		a.Add(fleet.Audit{What: fmt.Sprint(n)})
	}
	require.LessOrEqual(t, len(a.ring), 2*auditKept)
	require.GreaterOrEqual(t, len(a.ring), auditKept)
	require.FileExists(t, filepath.Join(dir, "audit.jsonl.1"))
	info, err := os.Stat(filepath.Join(dir, "audit.jsonl"))
	require.NoError(t, err)
	require.Less(t, info.Size(), a.size)
	list := a.List(all, 1)
	require.Equal(t, fmt.Sprint(2*auditKept+9), list[0].What)
}

func TestTheAuditLogIsAskedByPoolAndInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, e := range []fleet.Audit{
		{Pool: "p", Instance: "abc1", What: "a"},
		{Pool: "q", Instance: "abc2", What: "b"},
		{Pool: "p", Several: []string{"abc1", "xyz"}, What: "c"},
		{Provider: "cloud", What: "d"},
	} {
		w.audit.Add(e)
	}
	for _, c := range []struct{ pool, instance, want string }{
		{"", "", "abcd"}, {"p", "", "ac"}, {"", "abc", "abc"}, {"", "abc1", "ac"}, {"q", "abc1", ""}, {"", "xy", "c"},
	} {
		list, err := w.Audit(t.Context(), c.pool, c.instance, 10)
		require.NoError(t, err)
		got := ""
		for _, e := range list {
			got += e.What
		}
		require.Equal(t, c.want, got, "%+v", c)
	}
}
