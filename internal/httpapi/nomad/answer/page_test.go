package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-bexpr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

func searched() Lister[*drover.Evaluation, string] {
	l := lister()
	l.Search = Search[*drover.Evaluation]{
		Words:  func(e *drover.Evaluation) [4]string { return [4]string{e.ID, e.JobID} },
		Status: func(e *drover.Evaluation) string { return e.Status },
		Sorts: map[string]func(*drover.Evaluation) (uint64, string){
			"job":      func(e *drover.Evaluation) (uint64, string) { return 0, e.JobID },
			"priority": func(e *drover.Evaluation) (uint64, string) { return uint64(e.Priority), "" },
		},
	}
	return l
}

// TestSortedPagesAreTheSortedList: whatever is sorted by, searched and asked for, the pages hold each element that is kept once, in
// order, and each says how many there are. The model sorts all.
func TestSortedPagesAreTheSortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newState()
		for i, job := range rapid.SliceOfN(rapid.StringMatching(`[aB.é]{0,3}`), 0, 14).Draw(rt, "jobs") {
			s.evals = append(s.evals, &drover.Evaluation{
				ID: fmt.Sprintf("%c.%d", 'a'+i%3, i), JobID: job, Priority: rapid.IntRange(0, 2).Draw(rt, "priority"),
				Status: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "status"), CreateIndex: uint64(i % 3),
			})
		}
		sort, search := rapid.SampledFrom([]string{"", "job", "-job", "priority", "-priority"}).Draw(rt, "sort"),
			rapid.SampledFrom([]string{"", "A", "b a", "É"}).Draw(rt, "search")
		statuses := rapid.SampledFrom([][]string{nil, {"x"}, {"x", "y"}}).Draw(rt, "statuses")
		reverse := rapid.Bool().Draw(rt, "reverse")
		var want []*drover.Evaluation
		counts := map[string]int{}
		for _, e := range s.evals {
			all := true
			for _, word := range strings.Fields(strings.ToLower(search)) {
				all = all && (strings.Contains(strings.ToLower(e.ID), word) || strings.Contains(strings.ToLower(e.JobID), word))
			}
			if all {
				counts[e.Status]++
			}
			if all && (statuses == nil || slices.Contains(statuses, e.Status)) {
				want = append(want, e)
			}
		}
		slices.SortFunc(want, func(a, b *drover.Evaluation) int {
			switch strings.TrimPrefix(sort, "-") {
			case "job":
				return cmp.Or(cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.ID, b.ID))
			case "priority":
				return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
			}
			return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
		})
		if reverse != strings.HasPrefix(sort, "-") {
			slices.Reverse(want)
		}
		wanted := []string{}
		for _, e := range want {
			wanted = append(wanted, e.ID)
		}
		query := url.Values{
			"per_page": {strconv.Itoa(rapid.IntRange(1, 4).Draw(rt, "per page"))}, "sort": {sort}, "search": {search}, "status": statuses,
			"reverse": {strconv.FormatBool(reverse)}, "counts": {"status"},
		}
		counted := []string{}
		for _, status := range []string{"x", "y", "z"} {
			if counts[status] > 0 {
				counted = append(counted, fmt.Sprintf("%s=%d", status, counts[status]))
			}
		}
		got := []string{}
		for range len(s.evals) + 2 {
			w := httptest.NewRecorder()
			require.NoError(rt, searched().Serve(cluster(s), w, request(t, query.Encode())))
			require.Equal(rt, strconv.Itoa(len(want)), w.Header().Get(totalHeader))
			require.Equal(rt, strings.Join(counted, ", "), w.Header().Get(countsHeader), "whatever status is asked for")
			var page []string
			require.NoError(rt, json.Unmarshal(w.Body.Bytes(), &page))
			got = append(got, page...)
			query.Set("next_token", w.Header().Get("X-Nomad-NextToken"))
			if query.Get("next_token") == "" {
				break
			}
		}
		require.Equal(rt, wanted, got)
		query.Del("next_token")
		query.Del("per_page")
		query.Del("counts")
		w := httptest.NewRecorder()
		require.NoError(rt, searched().Serve(cluster(s), w, request(t, query.Encode())))
		var whole []string
		require.NoError(rt, json.Unmarshal(w.Body.Bytes(), &whole))
		require.Equal(rt, wanted, whole)
		require.Empty(rt, w.Header().Get(totalHeader))
		require.Empty(rt, w.Header().Values(countsHeader))
	})
}

func TestSearchesRefuseWhatTheyCannotDo(t *testing.T) {
	t.Parallel()
	s := newState(&drover.Evaluation{ID: "a", CreateIndex: 1})
	for query, says := range map[string]string{
		"sort=rack":                       `parameter "sort" is "rack", but must be one of job, priority`,
		"counts=job":                      `parameter "counts" is "job", but must be status`,
		"sort=--job":                      "must be one of",
		"sort=job&next_token=1.a":         "next_token",
		"sort=job&next_token=1.!.a":       "next_token",
		"sort=job&next_token=x.YQ.a":      "next_token",
		"sort=job&next_token=" + "1.YQ.a": "",
	} {
		err := searched().Serve(cluster(s), httptest.NewRecorder(), request(t, query))
		if says == "" {
			require.NoError(t, err, query)
			continue
		}
		require.Equal(t, drover.Invalid, drover.CodeOf(err), query)
		require.ErrorContains(t, err, says)
	}
	for query, says := range map[string]string{
		"search=x": "this list is not searched", "sort=x": "must be one of",
	} {
		require.NoError(t, lister().Serve(cluster(s), httptest.NewRecorder(), request(t, "status=x")), "a list may have its own")
		err := lister().Serve(cluster(s), httptest.NewRecorder(), request(t, query))
		require.Equal(t, drover.Invalid, drover.CodeOf(err), query)
		require.ErrorContains(t, err, says)
	}
}

// TestAQuickFilterSaysWhatTheSlowOneSays, which is the oracle.
func TestAQuickFilterSaysWhatTheSlowOneSays(t *testing.T) {
	t.Parallel()
	var expression func(depth int) *rapid.Generator[string]
	expression = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(rt *rapid.T) string {
			field, value := rapid.SampledFrom([]string{"ID", "JobID", "Status"}).Draw(rt, "field"),
				rapid.SampledFrom([]string{"a", "b", "ab", "", "é"}).Draw(rt, "value")
			kind := rapid.IntRange(0, 7).Draw(rt, "kind")
			if depth == 0 {
				kind %= 5
			}
			switch kind {
			case 0:
				return fmt.Sprintf("%s == %q", field, value)
			case 1:
				return fmt.Sprintf("%s != %q", field, value)
			case 2:
				return fmt.Sprintf("%s contains %q", field, value)
			case 3:
				return fmt.Sprintf("%q not in %s", value, field)
			case 4:
				return fmt.Sprintf("%q in %s", value, field)
			case 5:
				return "not (" + expression(depth-1).Draw(rt, "operand") + ")"
			case 6:
				return expression(0).Draw(rt, "left") + " and " + expression(depth-1).Draw(rt, "right")
			}
			return expression(depth-1).Draw(rt, "left") + " or " + expression(0).Draw(rt, "right")
		})
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := expression(2).Draw(rt, "expression")
		parsed, err := checkPatterns(text)
		require.NoError(rt, err)
		holds := quick[*drover.Evaluation](parsed)
		require.NotNil(rt, holds, text)
		oracle, err := bexpr.CreateEvaluator(text)
		require.NoError(rt, err)
		word := rapid.StringMatching(`[abé]{0,2}`)
		e := &drover.Evaluation{ID: word.Draw(rt, "id"), JobID: word.Draw(rt, "job"), Status: word.Draw(rt, "status")}
		want, err := oracle.Evaluate(e)
		require.NoError(rt, err)
		require.Equal(rt, want, holds(e), text)
	})
	for _, slow := range []string{
		`Priority == 1`, `Nothing == "a"`, `Status is empty`, `ID matches "a"`, `QueuedAllocations.a == 1`,
		`RelatedEvals contains "a"`, `"/ID" == "a"`,
	} {
		parsed, err := checkPatterns(slow)
		require.NoError(t, err)
		require.Nil(t, quick[*drover.Evaluation](parsed), slow)
	}
}
