package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state is a cluster whose only table is of evaluations.
type state struct {
	mu      sync.Mutex // guards what follows
	index   uint64
	evals   []*drover.Evaluation
	watched []string
	changed chan struct{}
	before  func() // called by the next Snapshot
}

func newState(evals ...*drover.Evaluation) *state {
	return &state{index: 7, evals: evals, changed: make(chan struct{})}
}

func (s *state) Snapshot() Snapshot {
	s.mu.Lock()
	f := s.before
	s.before = nil
	s.mu.Unlock()
	if f != nil {
		f() // it changes the state
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return snapshot{index: s.index, evals: s.evals}
}

func (s *state) Watch(table, key string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = append(s.watched, table+"/"+key)
	return s.changed
}

func (s *state) put(e *drover.Evaluation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	e.ModifyIndex = s.index
	s.evals = append(slices.Clone(s.evals), e)
	close(s.changed)
	s.changed = make(chan struct{})
}

type snapshot struct {
	Snapshot
	index uint64
	evals []*drover.Evaluation
}

func (s snapshot) Index() uint64            { return s.index }
func (s snapshot) TableIndex(string) uint64 { return s.index }
func (s snapshot) Evaluation(id string) *drover.Evaluation {
	i := slices.IndexFunc(s.evals, func(e *drover.Evaluation) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return s.evals[i]
}

func cluster(s State) *Cluster {
	return &Cluster{State: s, Clock: clock.Wall{}, Region: "global", Leader: func() string { return "here" }}
}

func request(t *testing.T, query string) *http.Request {
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/x?"+query, nil)
}

func TestQueriesAreRead(t *testing.T) {
	t.Parallel()
	c := cluster(newState())
	for text, want := range map[string]Query{
		"":                             {Namespace: "default", Wait: maxWait},
		"namespace=*&prefix=ab":        {Namespace: "*", Prefix: "ab", Wait: maxWait},
		"namespace=":                   {Namespace: "default", Wait: maxWait},
		"region=global":                {Namespace: "default", Wait: maxWait},
		"index=12&wait=3s":             {Namespace: "default", MinIndex: 12, Wait: 3 * time.Second},
		"wait=0":                       {Namespace: "default", Wait: maxWait},
		"wait=-1s":                     {Namespace: "default", Wait: maxWait},
		"wait=24h":                     {Namespace: "default", Wait: maxWait},
		"per_page=3&next_token=x":      {Namespace: "default", PerPage: 3, Next: "x", Wait: maxWait},
		"reverse=true&filter=a%3D%3Db": {Namespace: "default", Reverse: true, Filter: "a==b", Wait: maxWait},
	} {
		got, err := c.ParseQuery(request(t, text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"reverse=perhaps", "per_page=-1", "per_page=2147483648", "index=-1", "wait=soon"} {
		_, err := c.ParseQuery(request(t, text))
		require.Equal(t, drover.Invalid, drover.CodeOf(err), text)
	}
	_, err := c.ParseQuery(request(t, "region=mars"))
	require.Equal(t, http.StatusInternalServerError, httpapi.Status(err), "as Nomad answers")
	require.ErrorContains(t, err, "No path to region")
}

func TestAwaitEndsWithTheFirstOfItsReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newState()
		c := cluster(s)
		ask := func(ctx context.Context, q Query) (time.Duration, uint64, error) {
			start := time.Now()
			_, index, err := c.AwaitTable(ctx, q, tables.Evals)
			return time.Since(start), index, err
		}
		took, index, err := ask(t.Context(), Query{MinIndex: 0, Wait: time.Hour})
		require.NoError(t, err)
		require.Zero(t, took, "no index: answer at once")
		require.EqualValues(t, 7, index)
		require.Empty(t, s.watched, "nothing is watched that nobody waits for")

		took, _, err = ask(t.Context(), Query{MinIndex: 6, Wait: time.Hour})
		require.NoError(t, err)
		require.Zero(t, took, "the state is newer than what the client knows")

		took, index, err = ask(t.Context(), Query{MinIndex: 7, Wait: time.Minute})
		require.NoError(t, err)
		require.Equal(t, time.Minute, took)
		require.EqualValues(t, 7, index)

		time.AfterFunc(time.Second, func() { s.put(&drover.Evaluation{ID: "a"}) })
		took, index, err = ask(t.Context(), Query{MinIndex: 7, Wait: time.Minute})
		require.NoError(t, err)
		require.Equal(t, time.Second, took)
		require.EqualValues(t, 8, index)

		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("left"))
		defer cancel()
		took, _, err = ask(ctx, Query{MinIndex: 8, Wait: time.Minute})
		require.Equal(t, drover.Canceled, drover.CodeOf(err))
		require.ErrorContains(t, err, "left")
		require.Equal(t, 2*time.Second, took)
	})
}

// A change between the taking of the watch and the reading of the state is not missed.
func TestAwaitMissesNoChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newState()
		s.before = func() { s.put(&drover.Evaluation{ID: "a"}) }
		start := time.Now()
		_, index, err := cluster(s).AwaitTable(t.Context(), Query{MinIndex: 7, Wait: time.Hour}, tables.Evals)
		require.NoError(t, err)
		require.EqualValues(t, 8, index)
		require.Zero(t, time.Since(start))
	})
}

func TestOneObjectIsAnsweredWithItsIndex(t *testing.T) {
	t.Parallel()
	s := newState(&drover.Evaluation{ID: "a", ModifyIndex: 5})
	c := cluster(s)
	read := func(query, id string) (*httptest.ResponseRecorder, error) {
		s.watched = nil
		w := httptest.NewRecorder()
		at := Source{Table: tables.Evals, Key: id}
		return w, Single(c, w, request(t, query), at, "eval", func(_ Query, s Snapshot) (*drover.Evaluation, uint64) {
			if e := s.Evaluation(id); e != nil {
				return e, e.ModifyIndex
			}
			return nil, 0
		})
	}
	w, err := read("", "a")
	require.NoError(t, err)
	require.Equal(t, "5", w.Header().Get("X-Nomad-Index"))
	require.Equal(t, "true", w.Header().Get("X-Nomad-KnownLeader"))
	w, err = read("", "b")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.EqualError(t, err, "eval not found")
	require.Equal(t, "7", w.Header().Get("X-Nomad-Index"), "the table's")
	_, err = read("index=5&wait=1ms", "a")
	require.NoError(t, err)
	require.Equal(t, []string{"evals/a"}, s.watched)
	_, err = read("index=9&wait=1ms", "b")
	require.Error(t, err)
	require.Equal(t, []string{"evals/"}, s.watched, "no watch is left on a row that may never come")
}

func lister() Lister[*drover.Evaluation, string] {
	return Lister[*drover.Evaluation, string]{
		On: []Source{{Table: tables.Evals}},
		Items: func(q Query, s Snapshot) iter.Seq[*drover.Evaluation] {
			return func(yield func(*drover.Evaluation) bool) {
				for _, e := range s.(snapshot).evals {
					if strings.HasPrefix(e.ID, q.Prefix) && !yield(e) {
						return
					}
				}
			}
		},
		ID:      func(e *drover.Evaluation) string { return e.ID },
		Created: func(e *drover.Evaluation) uint64 { return e.CreateIndex },
		View:    func(e *drover.Evaluation, _ Snapshot) string { return e.ID },
		Sees:    Everybody[*drover.Evaluation],
	}
}

// Whatever the list, its pages hold each element once, in one order or its reverse, and the filter's only.
func TestPagesAreTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab.]{1,3}`), 0, 12, rapid.ID[string]).Draw(rt, "ids")
		s := newState()
		for _, id := range ids {
			s.evals = append(s.evals, &drover.Evaluation{ID: id, CreateIndex: rapid.Uint64Range(1, 3).Draw(rt, "created")})
		}
		query := url.Values{"per_page": {strconv.Itoa(rapid.IntRange(1, 4).Draw(rt, "per page"))}}
		reverse := rapid.Bool().Draw(rt, "reverse")
		query.Set("reverse", strconv.FormatBool(reverse))
		filter := rapid.Bool().Draw(rt, "filter")
		if filter {
			query.Set("filter", "CreateIndex != 2")
		}
		want := slices.Clone(s.evals)
		slices.SortFunc(want, func(a, b *drover.Evaluation) int {
			return position{index: a.CreateIndex, id: a.ID}.compare(position{index: b.CreateIndex, id: b.ID})
		})
		wanted := []string{}
		for _, e := range want {
			if !filter || e.CreateIndex != 2 {
				wanted = append(wanted, e.ID)
			}
		}
		if reverse {
			slices.Reverse(wanted)
		}
		got := []string{}
		for range len(ids) + 2 {
			w := httptest.NewRecorder()
			require.NoError(rt, lister().Serve(cluster(s), w, request(t, query.Encode())))
			var page []string
			require.NoError(rt, json.Unmarshal(w.Body.Bytes(), &page))
			got = append(got, page...)
			query.Set("next_token", w.Header().Get("X-Nomad-NextToken"))
			if query.Get("next_token") == "" {
				break
			}
		}
		require.Equal(rt, wanted, got)
	})
}

func TestListsRefuseWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	s := newState(&drover.Evaluation{ID: "a", CreateIndex: 1})
	for query, says := range map[string]string{
		"next_token=x":                               "next_token",
		"next_token=x.a":                             "next_token",
		"filter=ID+%3D%3D":                           "filter expression",
		"filter=Nothing+is+nil":                      "filter",
		"filter=Nil+%3D%3D+%221":                     "filter",
		"filter=" + strings.Repeat("x", maxFilter+1): "longer than 8192 bytes",
		"filter=ID+matches+%22" + strings.Repeat("x{1000}", 50):        "failed to read",
		"filter=ID+matches+%22" + strings.Repeat("x{999}", 50) + `%22`: "repetitions",
	} {
		err := lister().Serve(cluster(s), httptest.NewRecorder(), request(t, query))
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%.60s: %v", query, err)
		require.ErrorContains(t, err, says)
	}
}

// An empty list of evaluations has index 0, which clients look for; no other answer has.
func TestTheIndexOfNothing(t *testing.T) {
	t.Parallel()
	s := newState()
	s.index = 0
	for table, want := range map[string]string{tables.Evals: "0", tables.Allocs: "0", tables.Nodes: "1"} {
		l := lister()
		l.On = []Source{{Table: table}}
		w := httptest.NewRecorder()
		require.NoError(t, l.Serve(cluster(s), w, request(t, "")))
		require.Equal(t, want, w.Header().Get("X-Nomad-Index"), table)
		require.Equal(t, "[]", w.Body.String())
	}
	w := httptest.NewRecorder()
	require.NoError(t, cluster(s).Done(w, request(t, "")))
	require.Equal(t, "1", w.Header().Get("X-Nomad-Index"))
}

// pieces is a source that yields its elements, each after a while, and then its error.
func pieces(every time.Duration, end error, texts ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		timer := time.NewTimer(every)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if len(texts) == 0 {
			return "", end
		}
		text := texts[0]
		texts = texts[1:]
		return text, nil
	}
}

func TestFramedAndPlainStreams(t *testing.T) {
	t.Parallel()
	broken := errors.New("the node is gone")
	for _, c := range []struct {
		plain bool
		every time.Duration
		want  string
	}{
		{false, 0, `{"Data":"YQ=="}{"Data":"Yg=="}`},
		{false, 2500 * time.Millisecond, `{}{}{"Data":"YQ=="}{}{}{"Data":"Yg=="}{}{}`},
		{true, 2500 * time.Millisecond, `ab`},
		{true, time.Hour, `ab`},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := httptest.NewRecorder()
			source := Pump(t.Context(), 1, pieces(c.every, broken, "a", "b"))
			err := RelayFrames(t.Context(), cluster(newState()), w, c.plain, source, func(s string) Frame { return Frame{Data: []byte(s)} })
			require.ErrorIs(t, err, broken)
			require.Equal(t, c.want, w.Body.String(), "%+v", c)
			require.True(t, w.Flushed)
			Drain(source)
		})
	}
}

func TestAStreamEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		source := Pump(ctx, 1, pieces(time.Hour, errors.New("never"), "late"))
		time.AfterFunc(1500*time.Millisecond, cancel)
		w := httptest.NewRecorder()
		err := RelayFrames(ctx, cluster(newState()), w, false, source, func(string) Frame { return Frame{} })
		require.NoError(t, err, "nobody is left who could be told")
		require.Equal(t, "{}", w.Body.String())
		Drain(source)
	})
}

// failing is a client that takes n writes.
type failing struct {
	http.ResponseWriter
	n int
}

func (f *failing) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errors.New("reset by peer")
	}
	return len(p), nil
}

func TestAStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			source := Pump(ctx, 1, pieces(0, errors.New("never"), "a", "b", "c", "d"))
			w := &failing{httptest.NewRecorder(), n}
			require.NoError(t, RelayFrames(ctx, cluster(newState()), w, false, source, func(s string) Frame { return Frame{File: s} }))
			require.Equal(t, -1, w.n, "nothing is written after a failure")
			cancel()
			Drain(source)
		})
	}
}

func TestLinesEndWithANewline(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := cluster(newState()).OpenStream(w, "application/json")
	require.NoError(t, s.Line(Meta{Index: 1}))
	require.NoError(t, s.Object(1))
	require.Error(t, s.Line(func() {}), "what JSON cannot hold")
	require.Equal(t, fmt.Sprintf("%s\n1", `{"Index":1,"LastContact":0,"KnownLeader":false,"NextToken":""}`), w.Body.String())
	require.Equal(t, "no", w.Header().Get("X-Accel-Buffering"))
}

func TestCheckAndSet(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		cas   bool
		index uint64
	}{
		"": {false, 7}, "?cas=": {true, 0}, "?cas=0": {true, 0}, "?cas=12": {true, 12},
	} {
		index := uint64(7) // what the body said
		cas, err := CheckAndSet(httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/"+query, nil), &index)
		require.NoError(t, err, query)
		require.Equal(t, want.cas, cas, query)
		require.Equal(t, want.index, index, query)
	}
	_, err := CheckAndSet(httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/?cas=x", nil), new(uint64))
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}
