package fsm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
)

func started(id, webhook string) command.ExecutionRecord {
	return command.ExecutionRecord{Webhook: webhook, Event: command.ExecutionEvent{
		Type: "ExecutionStarted", Namespace: "default", Execution: execution.Execution{ID: id, RunnerID: "e-a", AllocID: "a", Running: true},
	}}
}

func ended(id, webhook string, code int) command.ExecutionRecord {
	r := started(id, webhook)
	r.Event.Type, r.Event.Execution.Running = "ExecutionEnded", false
	r.Event.Execution.Receipt = &execution.Receipt{ExecutionID: id, ExitCode: code}
	return r
}

func (d draw) executions() command.Command {
	c := &command.RecordExecutions{Time: d.time()}
	for range rapid.IntRange(0, 3).Draw(d.t, "records") {
		id, hook := d.id("x", 5), d.pick("hook", "", "https://example.org")
		if rapid.Bool().Draw(d.t, "ends") {
			c.Records = append(c.Records, ended(id, hook, 3))
		} else {
			c.Records = append(c.Records, started(id, hook))
		}
	}
	if rapid.Bool().Draw(d.t, "tells") {
		c.Told = []string{d.id("x", 5)}
	}
	return c
}

// checkExecutions compares the totals and the indexes with a scan.
func checkExecutions(t testing.TB, s *store.Snapshot) {
	var want store.ExecutionTotals
	var oldest *execution.Record
	untold := map[string]*execution.Record{}
	for r := range s.Executions() {
		want.Count++
		want.Bytes += r.Size()
		if r.Webhook != "" {
			want.Untold++
			untold[r.Execution.ID] = r
		} else if oldest == nil || r.At < oldest.At {
			oldest = r
		}
	}
	require.Equal(t, want, s.ExecutionTotals())
	for r := range s.UntoldExecutions() {
		require.Same(t, untold[r.Execution.ID], r)
		delete(untold, r.Execution.ID)
	}
	require.Empty(t, untold)
	told := 0
	for r := range s.ToldExecutions() {
		if told == 0 {
			require.Equal(t, oldest.At, r.At)
		}
		told++
	}
	require.Equal(t, want.Count-want.Untold, told)
}

func (b *bench) record(at time.Duration, records ...command.ExecutionRecord) error {
	_, err := b.try(&command.RecordExecutions{Records: records, Time: int64(at)})
	return err
}

// The server that led before and the one that leads now both saw an execution end, or one only believes that it was
// lost. The first end in the log is what everybody hears of.
func TestTheFirstEndOfAnExecutionCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.record(1, started("x", "https://example.org"), started("quiet", "")))
	require.True(t, b.now().Execution("x").Execution.Running)
	require.Nil(t, b.now().Execution("quiet"), "nobody is to be told: its runner knows it")
	require.NoError(t, b.record(2, ended("x", "https://example.org", 0), ended("quiet", "", 1)))
	require.NoError(t, b.record(3, ended("x", "https://example.org", 137), started("x", "https://example.org")))
	require.Zero(t, b.now().Execution("x").Execution.Receipt.ExitCode)
	require.Equal(t, 1, b.now().Execution("quiet").Execution.Receipt.ExitCode)
	var told []string
	for _, events := range b.told.events {
		for _, e := range events.Events {
			told = append(told, e.Type+" "+e.Key)
		}
	}
	require.Equal(t, []string{"ExecutionStarted x", "ExecutionStarted quiet", "ExecutionEnded x", "ExecutionEnded quiet"}, told)

	b.do(&command.RecordExecutions{Told: []string{"x", "unknown"}, Time: 4})
	require.Empty(t, b.now().Execution("x").Webhook)
	require.NoError(t, b.record(5, ended("x", "https://example.org", 137)))
	require.Empty(t, b.now().Execution("x").Webhook, "it was told")
	checkExecutions(t, restore(t, b.f).Store().Snapshot())
}

func TestExecutionsAreKeptForAWhileAndWithinBounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.record(1, ended("old", "", 0), ended("untold", "https://example.org", 0), started("runs", "https://example.org")))
	require.NoError(t, b.record(executionsKeptFor, ended("young", "", 0)))
	require.NotNil(t, b.now().Execution("old"))
	require.NoError(t, b.record(executionsKeptFor+1))
	require.Nil(t, b.now().Execution("old"))
	b.do(&command.RecordExecutions{Told: []string{"untold"}, Time: int64(executionsKeptFor + 2)})
	require.Nil(t, b.now().Execution("untold"), "it was kept to be told only")

	big := ended("", "", 0)
	big.Event.Execution.Spec.Argv = []string{strings.Repeat("a", maxExecutionBytes/10)}
	for i := range 20 {
		big.Event.Execution.ID = fmt.Sprint("big", i)
		require.NoError(t, b.record(executionsKeptFor+time.Duration(i)+3, big))
		require.LessOrEqual(t, b.now().ExecutionTotals().Bytes, maxExecutionBytes)
	}
	require.Nil(t, b.now().Execution("big0"))
	require.NotNil(t, b.now().Execution("big19"))

	for i := 0; i < maxExecutions; i += 500 {
		many := make([]command.ExecutionRecord, 500)
		for k := range many {
			many[k] = ended(fmt.Sprint("many", i+k), "", 0)
		}
		require.NoError(t, b.record(executionsKeptFor+100, many...))
	}
	require.Equal(t, maxExecutions, b.now().ExecutionTotals().Count)
	require.NotNil(t, b.now().Execution("runs"), "its webhook is still to be told")
	checkExecutions(t, b.now())

	untold := make([]command.ExecutionRecord, maxExecutions-2)
	for i := range untold {
		untold[i] = started(fmt.Sprint("hook", i), "https://example.org")
	}
	require.NoError(t, b.record(executionsKeptFor+101, untold...))
	require.Equal(t, drover.Exhausted, drover.CodeOf(b.record(executionsKeptFor+102, started("a", "h"), started("b", "h"))))
	require.Nil(t, b.now().Execution("a"))
	require.NoError(t, b.record(executionsKeptFor+103, started("a", "h")))
	require.NoError(t, b.record(executionsKeptFor+104, ended("a", "h", 0)), "what runs may end")
	checkExecutions(t, b.now())
}
