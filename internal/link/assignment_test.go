package link

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
)

// manyOf is an assignment of n allocations of one job, and one of another.
func manyOf(n int) exchange.Assignment {
	job := &drover.Job{ID: "many", Namespace: "default", Meta: map[string]string{}}
	for i := range 10 {
		job.TaskGroups = append(job.TaskGroups, &drover.TaskGroup{Name: fmt.Sprint("g", i), Tasks: []*drover.Task{{
			Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "24h"}, Resources: &drover.Resources{CPU: 1, MemoryMB: 10},
		}}})
	}
	a := exchange.Assignment{Index: 4, State: 5, Age: "x", Meta: map[string]*string{}, Signers: true}
	for i := range n {
		a.Allocs = append(a.Allocs, &drover.Allocation{
			ID: fmt.Sprint("a", i), Job: job, JobID: "many", TaskGroup: "g0", Metrics: &drover.AllocationMetric{NodesEvaluated: 3},
			AllocatedResources: &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{"t": {}}},
		})
	}
	a.Allocs = append(a.Allocs, &drover.Allocation{ID: "b", Job: &drover.Job{ID: "other"}}, &drover.Allocation{ID: "gone"})
	return a
}

// over sends a value as the link does.
func over[T any](t testing.TB, v any) (out T) {
	data, err := wire.Msgpack{}.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, wire.Msgpack{}.Unmarshal(data, &out))
	return out
}

func TestJobsTravelOnce(t *testing.T) {
	t.Parallel()
	var j answers
	a := manyOf(3)
	reply, err := j.reply(a, &nodeRequest{Apart: true})
	require.NoError(t, err)
	require.Len(t, reply.Jobs, 2)
	sent := over[pullReply](t, reply)
	got, err := sent.assignment()
	require.NoError(t, err)
	require.Equal(t, []uint64{4, 5}, []uint64{got.Index, got.State})
	require.Equal(t, "x", got.Age)
	require.Len(t, got.Allocs, 5)
	require.Equal(t, a.Allocs[0].Job, got.Allocs[0].Job)
	require.Same(t, got.Allocs[0].Job, got.Allocs[2].Job)
	require.Equal(t, "other", got.Allocs[3].Job.ID)
	require.Nil(t, got.Allocs[4].Job)
	require.Nil(t, got.Allocs[0].Metrics, "why a node was chosen is for people")
	require.NotNil(t, a.Allocs[0].Job, "the state's own is not changed")
	require.NotNil(t, a.Allocs[0].Metrics)

	again, err := j.reply(a, &nodeRequest{Apart: true})
	require.NoError(t, err)
	require.Same(t, &reply.Jobs[0][0], &again.Jobs[0][0], "it is encoded once for all nodes")
}

// A node gets an allocation once in each version: of a pool of a hundred runners that each claim changes it would get all of them with
// each answer.
func TestWhatDidNotChangeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var j answers
	history, other := new(int), new(int)
	a := manyOf(3)
	a.History = history
	for i, x := range a.Allocs {
		x.ModifyIndex = uint64(i) // the state's index is 5
	}
	asked := func(answer string) exchange.Assignment {
		reply, err := j.reply(a, &nodeRequest{Apart: true, Answer: answer})
		require.NoError(t, err)
		sent := over[pullReply](t, reply)
		got, err := sent.assignment()
		require.NoError(t, err)
		return got
	}
	first := asked("")
	require.Len(t, first.Allocs, 5)
	require.Empty(t, first.Same)
	require.NotEmpty(t, first.Answer)
	require.Nil(t, first.History)

	changed := *a.Allocs[1]
	changed.ModifyIndex, a.State = 6, 7
	a.Allocs[1] = &changed
	lost := *a.Allocs[3]
	lost.ClientStatus = drover.AllocClientUnknown
	a.Allocs[3] = &lost
	second := asked(first.Answer)
	require.Equal(t, []string{"a0", "a2", "gone"}, second.Same)
	require.Len(t, second.Allocs, 2)
	require.Equal(t, "a1", second.Allocs[0].ID)
	require.Equal(t, a.Allocs[1].Job, second.Allocs[0].Job)
	require.Equal(t, drover.AllocClientUnknown, second.Allocs[1].ClientStatus, "until the node says something about it")
	require.NotEqual(t, first.Answer, second.Answer)

	a.State = 6
	require.Len(t, asked(second.Answer).Allocs, 5, "the node knows a later state than this one")
	for _, answer := range []string{"/5", "x/5", first.Answer + "x", strings.Repeat("9", 40)} {
		require.Len(t, asked(answer).Allocs, 5, answer)
	}
	a.History = other
	third := asked(first.Answer)
	require.Len(t, third.Allocs, 5, "the state was replaced")
	a.History = history
	require.Len(t, asked(first.Answer).Allocs, 5, "names of before another history count no more")
	a.History = nil
	require.Empty(t, asked(third.Answer).Answer)
	require.Len(t, asked("").Allocs, 5)
}

// A node of before asks otherwise and is answered as before; a server of before answers as it always did.
func TestNeighboursOfBeforeHaveJobsInAllocations(t *testing.T) {
	t.Parallel()
	var j answers
	a := manyOf(2)
	reply, err := j.reply(a, &nodeRequest{})
	require.NoError(t, err)
	require.Equal(t, a.Allocs[0].Job, over[exchange.Assignment](t, reply).Allocs[0].Job)

	old := over[pullReply](t, a)
	got, err := old.assignment()
	require.NoError(t, err)
	require.Equal(t, a.Allocs[1].Job, got.Allocs[1].Job)

	for _, bad := range []pullReply{
		{JobOf: []int{0}}, {Allocs: a.Allocs, JobOf: []int{2}, Jobs: [][]byte{{0x80}}}, {Allocs: a.Allocs, Jobs: [][]byte{{0xc1}}},
	} {
		_, err := bad.assignment()
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

// Who asks for compressed answers, as nodes of before do, gets them as they are.
func TestNothingIsCompressed(t *testing.T) {
	t.Parallel()
	w := &world{}
	body, err := wire.Msgpack{}.Marshal(nodeRequest{NodeID: "n1"})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, procPull, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/msgpack")
	r.Header.Set("Accept-Encoding", "gzip")
	Identity{NodeID: "n1", Secret: "s-n1"}.set(r.Header)
	out := httptest.NewRecorder()
	Handler(w, w, NewNodes()).ServeHTTP(out, r)
	require.Equal(t, http.StatusOK, out.Code, out.Body)
	require.Empty(t, out.Header().Get("Content-Encoding"))
	var a exchange.Assignment
	require.NoError(t, wire.Msgpack{}.Unmarshal(out.Body.Bytes(), &a))
	require.NotEmpty(t, a.Allocs)
}

// BenchmarkPull is what answering a node costs that has ten allocations of a job, and what it costs the node.
func BenchmarkPull(b *testing.B) {
	a := manyOf(10)
	for name, apart := range map[string]bool{"inline": false, "apart": true} {
		var j answers
		encode := func() []byte {
			r, err := j.reply(a, &nodeRequest{Apart: apart})
			require.NoError(b, err)
			data, err := wire.Msgpack{}.Marshal(r)
			require.NoError(b, err)
			return data
		}
		data := encode()
		b.Run("server/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				encode()
			}
			b.ReportMetric(float64(len(data)), "wire-B/op")
		})
		b.Run("node/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var r pullReply
				require.NoError(b, wire.Msgpack{}.Unmarshal(data, &r))
				_, err := r.assignment()
				require.NoError(b, err)
			}
		})
	}
}
