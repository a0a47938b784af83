package office

import (
	"context"
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

// TestWhatADeadServerDidIsToldFromTheState: what it bought and returned is told once, and that more is missing, with the time.
func TestWhatADeadServerDidIsToldFromTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	bought := fleet.Durable{ID: "dead1", Pool: "p", State: fleet.InstanceGone, PlannedAt: at, ReadyAt: at.Add(time.Minute)}
	bought.GoneAt, bought.Bought, bought.Why, bought.Reason = at.Add(time.Hour), "for work", "idle", "destroyed: idle"
	noted := bought
	noted.ID = "noted1"
	foreign := bought
	foreign.ID, foreign.Of = "foreign1", "another"
	for _, d := range []fleet.Durable{bought, noted, foreign} {
		w.rows[d.ID] = &fleet.InstanceRecord{Durable: d}
	}
	ours := []fleet.Audit{
		{At: at, Pool: "p", Several: []string{"noted1", "x"}, What: "create"},
		{At: bought.ReadyAt, Pool: "p", Instance: "noted1", What: "active"},
		{At: bought.GoneAt, Pool: "p", Instance: "noted1", What: "gone"},
	}
	list, err := w.Audit(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Empty(t, list, "a server that is alone has noted all that there is")

	w.Office.deps.Others = func(context.Context, AuditQuery) ([]fleet.Audit, []string) { return ours, []string{"s3"} }
	said := func(pool, instance string, most int) (words []string) {
		list, err := w.Audit(t.Context(), pool, instance, most)
		require.NoError(t, err)
		for _, e := range list {
			words = append(words, e.What+" "+e.Instance+" "+e.Reason)
		}
		return words
	}
	words := said("", "", 10)
	require.Len(t, words, 8)
	require.Equal(t, []string{
		"create  ", "create dead1 for work (from the state)", "active noted1 ", "active dead1 its agent was ready (from the state)",
		"gone noted1 ", "gone dead1 destroyed: idle (from the state)", "incomplete  server s3 does not answer: what it did is missing here",
	}, words[:7])
	require.Contains(t, words[7], "about 1 machines from 2026-11-24T12:00:00Z to 2026-11-24T13:00:00Z")
	require.Len(t, said("", "", 1), 3, "the newest one, and what is missing")
	require.Len(t, said("", "noted", 10), 4)
	require.Len(t, said("q", "", 10), 1+len(ours), "what others answer is theirs")
}
