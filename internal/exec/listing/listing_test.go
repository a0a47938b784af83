package listing_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/listing"
)

var start = time.Unix(1_700_000_000, 0)

// drawn is an execution of few possible ones, so that much is equal.
func drawn(t *rapid.T, id string) execution.Listed {
	environment := rapid.SampledFrom([]string{"go", "python"}).Draw(t, "environment")
	x := execution.Listed{
		Execution: execution.Execution{
			ID: id, RunnerID: environment + "-1", Running: rapid.Bool().Draw(t, "running"),
			Spec: execution.Spec{Argv: []string{"Echo", environment}},
		},
		Namespace: rapid.SampledFrom([]string{"default", "a"}).Draw(t, "namespace"), Environment: environment,
		StartedAt: start.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "started")) * time.Second),
	}
	if !x.Running {
		x.EndedAt = x.StartedAt.Add(time.Second)
		x.Receipt = &execution.Receipt{
			Cause: execution.CauseExited, ExitCode: rapid.IntRange(0, 2).Draw(t, "exit"), PeakMemory: rapid.Int64Range(0, 2).Draw(t, "memory"),
		}
	}
	return x
}

// kept is what a page has to keep, as simply as can be.
func kept(q execution.ListQuery, x *execution.Listed) bool {
	status := func(s string) bool {
		return s == execution.StatusRunning && x.Running || s == execution.StatusEnded && !x.Running || !x.Running && s == string(x.Receipt.Cause)
	}
	word := func(w string) bool {
		all := strings.ToLower(strings.Join(append(slices.Clone(x.Spec.Argv), x.ID, x.RunnerID, x.Environment), "\n"))
		return strings.Contains(all, strings.ToLower(w))
	}
	return !slices.Contains([]bool{
		slices.Contains([]string{"", x.Environment, execution.Key(x.Namespace, x.Environment)}, q.Environment),
		slices.Contains([]string{"", x.RunnerID}, q.Runner),
		len(q.Statuses) == 0 || slices.ContainsFunc(q.Statuses, status),
		q.Exit == "" || ended(x, q.Exit),
		q.Since.IsZero() || x.Running || !x.EndedAt.Before(q.Since),
		q.Until.IsZero() || !x.StartedAt.After(q.Until),
		!slices.ContainsFunc(q.Words, func(w string) bool { return !word(w) }),
	}, false)
}

// ended reports whether an execution ended with a code, or with any but 0.
func ended(x *execution.Listed, code string) bool {
	return !x.Running && (code == fmt.Sprint(x.Receipt.ExitCode) || code == execution.ExitNonzero && x.Receipt.ExitCode != 0)
}

// TestPagesAreTheWholeListInOrder: however the executions are divided between servers, all pages together are what a stupid model sorts.
func TestPagesAreTheWholeListInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		servers := make([][]execution.Listed, rapid.IntRange(1, 3).Draw(t, "servers"))
		var all []execution.Listed
		for i := range rapid.IntRange(0, 30).Draw(t, "executions") {
			x := drawn(t, fmt.Sprintf("x%02d", i))
			at := rapid.IntRange(0, len(servers)-1).Draw(t, "at")
			servers[at], all = append(servers[at], x), append(all, x)
		}
		q := execution.ListQuery{
			Environment: rapid.SampledFrom([]string{"", "", "go", "a~go"}).Draw(t, "of"),
			Runner:      rapid.SampledFrom([]string{"", "", "go-1"}).Draw(t, "runner"),
			Statuses:    rapid.SampledFrom([][]string{nil, {"running"}, {"ended"}, {"exited", "running"}, {"oom"}}).Draw(t, "status"),
			Exit:        rapid.SampledFrom([]string{"", "", "1", "nonzero"}).Draw(t, "code"),
			Words:       rapid.SampledFrom([][]string{nil, {"ECHO", "x1"}, {"python"}}).Draw(t, "words"),
			Sort:        rapid.SampledFrom([]string{"started", "-started", "ended", "-memory", "status", "-environment"}).Draw(t, "sort"),
			PerPage:     rapid.IntRange(1, 12).Draw(t, "page"),
		}
		if rapid.Bool().Draw(t, "bounded") {
			q.Since, q.Until = start.Add(2*time.Second), start.Add(2*time.Second)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(x execution.Listed) bool { return !kept(q, &x) })
		slices.SortFunc(want, func(a, b execution.Listed) int {
			end := func(x *execution.Listed) time.Time {
				if x.Running {
					return start.Add(time.Hour)
				}
				return x.EndedAt
			}
			memory := func(x *execution.Listed) int64 {
				if x.Receipt == nil {
					return 0
				}
				return x.Receipt.PeakMemory
			}
			by := map[string]int{
				"started": a.StartedAt.Compare(b.StartedAt), "ended": end(&a).Compare(end(&b)), "memory": cmp.Compare(memory(&a), memory(&b)),
				"status":      cmp.Compare(listing.Status(&a.Execution), listing.Status(&b.Execution)),
				"environment": cmp.Compare(execution.Key(a.Namespace, a.Environment), execution.Key(b.Namespace, b.Environment)),
			}[strings.TrimPrefix(q.Sort, "-")]
			return cmp.Or(by, cmp.Compare(a.ID, b.ID))
		})
		if strings.HasPrefix(q.Sort, "-") {
			slices.Reverse(want)
		}
		got := []execution.Listed{}
		for range len(all) + 1 {
			whole, err := listing.New(q)
			require.NoError(t, err)
			for _, some := range servers {
				part, err := listing.New(q)
				require.NoError(t, err)
				for i := range some {
					part.Add(&some[i])
				}
				page := part.Page()
				whole.AddPage(&page)
				whole.AddPage(&execution.ListPage{Items: page.Items, Total: len(page.Items)}) // another server has them, too
			}
			page := whole.Page()
			require.LessOrEqual(t, len(page.Items), q.PerPage)
			if len(want) <= q.PerPage {
				require.Equal(t, len(want), page.Total)
			}
			got = append(got, page.Items...)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if len(want) == 0 {
			require.Empty(t, got)
			return
		}
		require.Equal(t, want, got)
	})
}

// TestAllThatIsNamedSorts: what the vocabulary names can be sorted by, both ways.
func TestAllThatIsNamedSorts(t *testing.T) {
	t.Parallel()
	for _, name := range execution.ListSorts() {
		for _, way := range []string{"", "-"} {
			_, err := listing.New(execution.ListQuery{Sort: way + name, PerPage: 1})
			require.NoError(t, err)
		}
	}
}

func TestWhatNoListAnswersIsNamed(t *testing.T) {
	t.Parallel()
	for word, q := range map[string]execution.ListQuery{
		"sort":       {Sort: "-name", PerPage: 1},
		"status":     {Statuses: []string{"pending"}, PerPage: 1},
		"exit":       {Exit: "256", PerPage: 1},
		"per_page":   {PerPage: execution.MaxListPage + 1},
		"search":     {Words: []string{strings.Repeat("x", 512+1)}, PerPage: 1},
		"until":      {Since: start, Until: start.Add(-1), PerPage: 1},
		"next_token": {After: "1.x", PerPage: 1},
	} {
		_, err := listing.New(q)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), word)
		require.ErrorContains(t, err, word)
	}
}
