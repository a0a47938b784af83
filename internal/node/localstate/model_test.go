package localstate

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// allocOf is an allocation of one of some jobs, or of a warm pool, whose records go another way.
func allocOf(id string, job int, pool bool) *drover.Allocation {
	a := &drover.Allocation{ID: id, TaskGroup: "g", Name: fmt.Sprint(job)}
	if job > 0 {
		group := &drover.TaskGroup{Name: "g", Tasks: []*drover.Task{{Name: "t"}}}
		if pool {
			group.Pool = &drover.WarmPool{Size: job}
		}
		a.Job = &drover.Job{ID: fmt.Sprint("j", job), TaskGroups: []*drover.TaskGroup{group}}
	}
	return a
}

func byID(records []Record) []Record {
	return slices.SortedFunc(slices.Values(records), func(x, y Record) int { return strings.Compare(x.Alloc.ID, y.Alloc.ID) })
}

// TestBoltIsWhatMemoryIs: over any history of changes, with restarts between, the file holds what a map would.
func TestBoltIsWhatMemoryIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		place, err := os.MkdirTemp(dir, "")
		require.NoError(t, err)
		defer os.RemoveAll(place)
		open := func() *Bolt {
			b, err := OpenBolt(filepath.Join(place, "state.db"), slog.New(slog.DiscardHandler), clock.Wall{})
			require.NoError(t, err)
			return b
		}
		bolt, memory := open(), NewMemory()
		defer func() { _ = bolt.Close() }()
		_, err = bolt.Load()
		require.NoError(t, err)
		id := rapid.SampledFrom([]string{"a", "b", "c"})
		make := func(changes ...Change) {
			if rapid.IntRange(0, 9).Draw(t, "wait") == 0 {
				require.NoError(t, bolt.Commit(t.Context(), changes...))
			} else {
				bolt.Queue(changes...)
			}
			memory.Queue(changes...)
		}
		known := map[string]bool{} // an allocation's own record is its first one
		one := func(t *rapid.T) string {
			a := id.Draw(t, "id")
			if !known[a] {
				t.Skip("it was not put yet")
			}
			return a
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				a := id.Draw(t, "id")
				known[a] = true
				make(PutAlloc(allocOf(a, rapid.IntRange(0, 2).Draw(t, "job"), a == "c")))
			},
			"status": func(t *rapid.T) {
				make(PutStatus(one(t), Status{EndedAt: rapid.Int64Range(0, 9).Draw(t, "at")}))
			},
			"task": func(t *rapid.T) {
				make(PutTask(one(t), "t", Task{Intent: rapid.StringN(0, 3, 3).Draw(t, "intent"), Handle: json.RawMessage(`{}`)}))
			},
			"drop": func(t *rapid.T) {
				a := one(t)
				delete(known, a)
				make(Drop(a, "t")...)
			},
			"settle": func(t *rapid.T) { require.NoError(t, bolt.Settle(t.Context(), id.Draw(t, "id"))) },
			"restart": func(*rapid.T) {
				require.NoError(t, bolt.Close())
				bolt = open()
				_, err := bolt.Load()
				require.NoError(t, err)
			},
		})
		require.NoError(t, bolt.Close())
		bolt = open()
		got, err := bolt.Load()
		require.NoError(t, err)
		want, err := memory.Load()
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(byID(want), byID(got)))
	})
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFormat()
	alloc, err := f.encode(PutAlloc(sampleAlloc("a")))
	require.NoError(t, err)
	for name, entries := range map[string]map[string][]byte{
		"of a later version":     {"alloc/a": append([]byte{99}, alloc[1:]...)},
		"empty":                  {"alloc/a": {}},
		"cut":                    {"alloc/a": alloc[:len(alloc)/2]},
		"a status of a later":    {"alloc/a": alloc, "status/a": {99}},
		"a task of a later":      {"alloc/a": alloc, "task/a/t": {99}},
		"a job that is not here": {"alloc/a": must(f.encode(Change{key: "alloc/a", value: stored{Job: "job/x", Alloc: sampleAlloc("a")}}))},
	} {
		_, _, err := f.assemble(entries)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "local state", name)
	}
	records, _, err := f.assemble(map[string][]byte{"status/gone": {99}, "task/gone/t": {99}})
	require.NoError(t, err, "what is left of a forgotten allocation is not looked at")
	require.Empty(t, records)
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestNoneRemembersNothing(t *testing.T) {
	t.Parallel()
	var s Store = None{}
	require.NoError(t, s.Commit(t.Context(), PutAlloc(sampleAlloc("a"))))
	s.Queue(PutStatus("a", Status{}))
	require.NoError(t, s.Settle(t.Context(), "a"))
	records, err := s.Load()
	require.NoError(t, err)
	require.Empty(t, records)
	require.NoError(t, s.Close())
}
