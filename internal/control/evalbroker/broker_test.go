package evalbroker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

var t0 = time.Unix(1000, 0)

func eval(id, job string, priority int, index uint64) *drover.Evaluation {
	return &drover.Evaluation{
		ID: id, Namespace: "default", JobID: job, Type: drover.JobTypeService, Priority: priority, CreateIndex: index,
		ModifyIndex: index, Status: drover.EvalPending,
	}
}

func take(t *testing.T, b *Broker, now time.Time, want string) string {
	t.Helper()
	e, token, ok := b.Dequeue(now, drover.JobTypeService)
	if want == "" {
		require.False(t, ok)
		return ""
	}
	require.True(t, ok)
	require.Equal(t, want, e.ID)
	return token
}

func TestPriorityThenAge(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	b.Enqueue(t0, eval("a", "a", 50, 1), eval("b", "b", 70, 2), eval("c", "c", 50, 3))
	take(t, b, t0, "b")
	take(t, b, t0, "a")
	take(t, b, t0, "c")
	take(t, b, t0, "")
}

func TestOneAtATimeForEachJob(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	b.Enqueue(t0, eval("1", "j", 50, 1), eval("2", "j", 50, 2), eval("3", "j", 50, 3))
	token := take(t, b, t0, "1")
	take(t, b, t0, "")
	require.Equal(t, "2", b.Superseded()[0].ID)
	require.Empty(t, b.Superseded())
	require.NoError(t, b.Ack(t0, "1", token))
	take(t, b, t0, "3")
}

func TestNackTimeoutAndDeliveryLimit(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	b.Enqueue(t0, eval("1", "j", 50, 1))
	first := take(t, b, t0, "1")
	now := t0.Add(time.Minute) // the worker is gone
	take(t, b, now, "")
	require.Equal(t, drover.Conflict, drover.CodeOf(b.Ack(now, "1", first)))
	now = now.Add(time.Second)
	second := take(t, b, now, "1")
	require.NoError(t, b.Nack(now, "1", second))
	take(t, b, now.Add(19*time.Second), "")
	now = now.Add(20 * time.Second)
	third := take(t, b, now, "1")
	require.NoError(t, b.Nack(now, "1", third))
	take(t, b, now.Add(time.Hour), "")
	e, token, ok := b.Dequeue(now, FailedQueue)
	require.True(t, ok)
	require.Equal(t, "1", e.ID)
	require.NoError(t, b.Ack(now, "1", token))
	require.Equal(t, 0, len(b.evals)+len(b.jobs))
}

func TestPostponedDeliveriesDoNotCount(t *testing.T) {
	t.Parallel()
	b, now := New(Config{}), t0
	b.Enqueue(now, eval("1", "j", 50, 1))
	for range 10 {
		token := take(t, b, now, "1")
		require.NoError(t, b.Postpone(now, "1", token, time.Second))
		take(t, b, now, "")
		now = now.Add(time.Second)
	}
}

func TestDelayed(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	e := eval("1", "j", 50, 1)
	e.WaitUntil = t0.Add(time.Minute)
	b.Enqueue(t0, e)
	take(t, b, t0, "")
	at, ok := b.Next()
	require.True(t, ok)
	require.Equal(t, e.WaitUntil, at)
	take(t, b, at, "1")
}

func TestBlockedAgainBeforeTheAck(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	b.Enqueue(t0, eval("1", "j", 50, 1))
	token := take(t, b, t0, "1")
	again := eval("1", "j", 50, 1)
	again.SnapshotIndex = 9
	b.Enqueue(t0, again)
	require.NoError(t, b.Ack(t0, "1", token))
	token = take(t, b, t0, "1")
	b.Enqueue(t0, again) // the same once more, from a restore: nothing new
	require.NoError(t, b.Ack(t0, "1", token))
	take(t, b, t0, "")
}

func TestRemove(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	b.Enqueue(t0, eval("1", "j", 50, 1), eval("2", "j", 50, 2))
	b.Remove("1")
	take(t, b, t0, "2")
	b.Remove("2") // with a worker: its Ack removes it
	require.Len(t, b.evals, 1)
	b.Enqueue(t0, eval("3", "j", 50, 3))
	b.Remove("3")
	require.Len(t, b.evals, 1)
	require.Nil(t, b.jobs[eval("3", "j", 50, 3).Job()].pending)
}

func BenchmarkBroker(b *testing.B) {
	broker := New(Config{})
	evals := make([]*drover.Evaluation, 10_000)
	for i := range evals {
		evals[i] = eval(fmt.Sprint(i), fmt.Sprint(i), 50, uint64(i))
	}
	broker.Enqueue(t0, evals...)
	for b.Loop() {
		e, token, _ := broker.Dequeue(t0, drover.JobTypeService)
		_ = broker.Ack(t0, e.ID, token)
		broker.Enqueue(t0, e)
	}
}
