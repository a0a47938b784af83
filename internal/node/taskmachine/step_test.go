package taskmachine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// transcript renders a run as lines "event: phase [effects]".
func transcript(v View, s Status, events ...Event) (Status, string) {
	var b strings.Builder
	now := start
	for _, ev := range events {
		now = now.Add(time.Second)
		var effects []Effect
		s, effects = Step(v, s, ev, now, 0.5)
		fmt.Fprintf(&b, "%s: %s", strings.TrimPrefix(fmt.Sprintf("%T", ev), "taskmachine."), s.Phase)
		for _, e := range effects {
			text := fmt.Sprintf("%T%v", e, e)
			fmt.Fprintf(&b, " %s", strings.TrimSuffix(strings.TrimPrefix(text, "taskmachine."), "{}"))
		}
		b.WriteString("\n")
	}
	return s, b.String()
}

func eventTypes(s Status) string {
	var types []string
	for _, e := range s.State.Events {
		types = append(types, e.Type)
	}
	return strings.Join(types, ", ")
}

// The views that TestStep takes through their events.
var (
	service = View{Policy: Policy{Attempts: 1, Interval: time.Minute, Delay: 4 * time.Second, Mode: "fail"}, KillTimeout: 5 * time.Second}
	delayed = changed(service, func(v *View) { v.Policy.Mode = "delay" })
	batch   = changed(service, func(v *View) { v.Once = true })
	pool    = changed(service, func(v *View) { v.Pool = true })
	slow    = changed(service, func(v *View) { v.ShutdownDelay, v.KillSignal = 3*time.Second, "SIGINT" })
)

func changed(v View, change func(*View)) View {
	change(&v)
	return v
}

// steps are what happens to a task that runs: its events, their transcript, the types of what is told of them, and whether it failed.
var steps = []struct {
	name   string
	view   View
	events []Event
	want   string
	types  string
	failed bool
}{
	{"batch ends", batch, []Event{Exited{}}, "Exited: dead Destroy Finish\n", "Received, Started, Terminated", false},
	{
		"batch fails twice", batch,
		[]Event{Exited{Code: 2}, Due{}, Prepared{}, Started{}, Exited{Code: 2}},
		"Exited: backoff Destroy Wake{4.5s}\nDue: preparing Prepare\nPrepared: starting Launch\nStarted: running Await\n" +
			"Exited: dead Destroy Finish\n",
		"Received, Started, Terminated, Restarting, Started, Terminated, Not Restarting", true,
	},
	{
		"service ends with 0 and is restarted", service,
		[]Event{Exited{}},
		"Exited: backoff Destroy Wake{4.5s}\n",
		"Received, Started, Terminated, Restarting", false,
	},
	{
		"mode delay waits for the interval's end", delayed,
		[]Event{Exited{Code: 1}, Due{}, Prepared{}, Started{}, Exited{Code: 1}},
		"Exited: backoff Destroy Wake{4.5s}\nDue: preparing Prepare\nPrepared: starting Launch\nStarted: running Await\n" +
			"Exited: backoff Destroy Wake{56s}\n",
		"Received, Started, Terminated, Restarting, Started, Terminated, Restarting", false,
	},
	{
		"a pool task is not restarted", pool,
		[]Event{Exited{Code: 137, Signal: 9, OOMKilled: true}},
		"Exited: dead Destroy Finish\n",
		"Received, Started, Terminated, Not Restarting", true,
	},
	{
		"a kill waits and stops", slow,
		[]Event{Kill{}, Exited{Code: 130, Signal: 2}},
		"Kill: stopping Stop{3s SIGINT 5s}\nExited: dead Destroy Finish\n", "Received, Started, Killing, Terminated, Killed", false,
	},
	{
		"a failed sibling", service,
		[]Event{Kill{Type: drover.TaskSiblingFailed, Sibling: "x"}, Kill{}, Exited{Code: 143, Signal: 15}},
		"Kill: stopping Stop{0s  5s}\nKill: stopping\nExited: dead Destroy Finish\n",
		"Received, Started, Sibling Task Failed, Killing, Terminated, Killed", false,
	},
	{
		"a restart by request does not count", service,
		[]Event{Restart{}, Exited{Code: 143, Signal: 15}, Prepared{}, Started{}, Exited{Code: 1}},
		"Restart: stopping Stop{0s  5s}\nExited: preparing Destroy Prepare\nPrepared: starting Launch\nStarted: running Await\n" +
			"Exited: backoff Destroy Wake{4.5s}\n",
		"Received, Started, Restart Signaled, Terminated, Restarting, Started, Terminated, Restarting", false,
	},
	{
		"a kill during the restart wins", service,
		[]Event{Restart{}, Kill{}, Exited{Code: 143}},
		"Restart: stopping Stop{0s  5s}\nKill: stopping\nExited: dead Destroy Finish\n",
		"Received, Started, Restart Signaled, Terminated, Killed", false,
	},
	{
		"the restart of all is told as a restart", service,
		[]Event{Kill{Type: drover.TaskRestartSignal}, Exited{Code: 143, Signal: 15}, Revive{}},
		"Kill: stopping Stop{0s  5s}\nExited: dead Destroy Finish\nRevive: pending\n",
		"Received, Started, Restart Signaled, Terminated, Restarting", false,
	},
	{
		"a kill during the restart of all wins", service,
		[]Event{Kill{Type: drover.TaskRestartSignal}, Kill{}, Exited{Code: 143, Signal: 15}},
		"Kill: stopping Stop{0s  5s}\nKill: stopping\nExited: dead Destroy Finish\n",
		"Received, Started, Restart Signaled, Killing, Terminated, Killed", false,
	},
	{
		"a kill during the backoff", service,
		[]Event{Exited{Code: 1}, Kill{}, Due{}},
		"Exited: backoff Destroy Wake{4.5s}\nKill: dead Finish\nDue: dead\n", "Received, Started, Terminated, Restarting", false,
	},
	{
		"a dead one is revived", batch,
		[]Event{Exited{}, Revive{}, Go{}},
		"Exited: dead Destroy Finish\nRevive: pending\nGo: preparing Prepare\n", "Received, Started, Terminated, Restarting", false,
	},
}

func TestStep(t *testing.T) {
	t.Parallel()
	up := []Event{Go{}, Prepared{}, Started{}}
	const upText = "Go: preparing Prepare\nPrepared: starting Launch\nStarted: running Await\n"
	for _, test := range steps {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, got := transcript(test.view, New(start), append(up, test.events...)...)
			require.Equal(t, upText+test.want, got)
			require.Equal(t, test.types, eventTypes(s))
			require.Equal(t, test.failed, s.State.Failed)
		})
	}
}

func TestStepBeforeRunning(t *testing.T) {
	t.Parallel()
	v := View{Policy: Policy{Attempts: 1, Interval: time.Minute, Delay: 4 * time.Second, Mode: "fail"}}
	for _, test := range []struct {
		name   string
		events []Event
		want   string
		types  string // "" = not looked at
		failed bool
	}{
		{"killed while pending", []Event{Kill{}}, "Kill: dead Finish\n", "", false},
		{
			"its prestart task failed",
			[]Event{Kill{Type: drover.TaskSiblingFailed, Sibling: "x"}},
			"Kill: dead Finish\n",
			"Received, Sibling Task Failed, Killing", false,
		},
		{
			"killed while preparing",
			[]Event{Go{}, Kill{}, PrepareFailed{}},
			"Go: preparing Prepare\nKill: stopping Cancel\nPrepareFailed: dead Finish\n", "", false,
		},
		{
			"killed while starting, and it started",
			[]Event{Go{}, Prepared{}, Kill{}, Started{}, Exited{Code: 1}},
			"Go: preparing Prepare\nPrepared: starting Launch\nKill: stopping Cancel\n" +
				"Started: stopping Await Stop{0s  0s}\nExited: dead Destroy Finish\n", "", false,
		},
		{
			"bad configuration",
			[]Event{Go{}, PrepareFailed{Type: drover.TaskFailedValidation}},
			"Go: preparing Prepare\nPrepareFailed: dead Finish\n", "", true,
		},
		{
			"download fails once",
			[]Event{Go{}, PrepareFailed{Type: drover.TaskDownloadFailed, Recoverable: true}},
			"Go: preparing Prepare\nPrepareFailed: backoff Wake{4.5s}\n", "", false,
		},
		{
			"setup of the allocation failed",
			[]Event{Kill{Type: drover.TaskSetupFailure, Reason: "no disk", Fails: true}},
			"Kill: dead Finish\n",
			"", true,
		},
		{
			"the driver fails for good",
			[]Event{Go{}, Prepared{}, StartFailed{Reason: "x"}},
			"Go: preparing Prepare\nPrepared: starting Launch\nStartFailed: dead Finish\n", "", true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, got := transcript(v, New(start), test.events...)
			require.Equal(t, test.want, got)
			require.Equal(t, test.failed, s.State.Failed)
			if test.types != "" {
				require.Equal(t, test.types, eventTypes(s))
			}
		})
	}
}

func TestStepRestored(t *testing.T) {
	t.Parallel()
	v := View{Policy: Policy{Attempts: 1, Interval: time.Minute, Delay: 4 * time.Second, Mode: "fail"}}
	began := start.Add(-time.Hour)
	stored := &drover.TaskState{State: drover.TaskStateRunning, StartedAt: began}

	s, got := transcript(v, Restore(stored, false, true), Restored{}, Exited{Code: 1})
	require.Equal(t, "Restored: running Await\nExited: backoff Destroy Wake{4.5s}\n", got)
	require.Equal(t, began, s.State.StartedAt)

	_, got = transcript(v, Restore(stored, true, true), Restored{}, Exited{Code: 1})
	require.Equal(t, "Restored: stopping Await Stop{0s  0s}\nExited: dead Destroy Finish\n", got)

	s, got = transcript(v, Restore(stored, false, true), RestoreFailed{Reason: "gone"})
	require.Equal(t, "RestoreFailed: backoff Wake{4.5s}\n", got)
	require.Equal(t, "Failed Restoring Task, Restarting", eventTypes(s))

	pool := v
	pool.Pool = true
	s, got = transcript(pool, Restore(stored, false, true), RestoreFailed{Reason: "gone"})
	require.Equal(t, "RestoreFailed: dead Finish\n", got)
	require.True(t, s.State.Failed)
}

// TestStepProperties feeds arbitrary events and looks at what must always hold.
func TestStepProperties(t *testing.T) {
	t.Parallel()
	events := []Event{
		Go{},
		Prepared{},
		PrepareFailed{Recoverable: true},
		PrepareFailed{},
		Started{},
		StartFailed{Recoverable: true},
		StartFailed{},
		Exited{},
		Exited{Code: 1},
		Kill{},
		Kill{Fails: true},
		Restart{},
		Due{},
		Restored{},
		RestoreFailed{},
		StopFailed{},
	}
	rapid.Check(t, func(t *rapid.T) {
		v := View{
			Policy: Policy{
				Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"), Interval: time.Minute, Delay: time.Second,
				Mode: rapid.SampledFrom([]string{"fail", "delay"}).Draw(t, "mode"),
			},
			Once: rapid.Bool().Draw(t, "once"), Pool: rapid.Bool().Draw(t, "pool"),
		}
		s := New(start)
		now := start
		finished, starts := 0, 0
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now = now.Add(time.Second)
			ev := rapid.SampledFrom(events).Draw(t, "event")
			next, effects := Step(v, s, ev, now, 0)
			if !s.Phase.CanBecome(next.Phase) {
				t.Fatalf("%T: %s became %s", ev, s.Phase, next.Phase)
			}
			if s.Phase == Dead && (next.Phase != Dead || len(effects) > 0) {
				t.Fatalf("%T: a dead task moved", ev)
			}
			if len(next.State.Events) > drover.MaxTaskEvents {
				t.Fatalf("%d events", len(next.State.Events))
			}
			for _, e := range effects {
				switch e.(type) {
				case Finish:
					finished++
				case Launch:
					starts++
					if s.Killed {
						t.Fatalf("%T: started after a kill", ev)
					}
				}
			}
			if v.Pool && s.Ran && next.Phase == Preparing {
				t.Fatalf("%T: a used runner is prepared again", ev)
			}
			s = next
		}
		if (s.Phase == Dead) != (finished == 1) {
			t.Fatalf("phase %s, finished %d times", s.Phase, finished)
		}
	})
}

// TestFinalFailures are marked, so that who waits for the task learns that waiting does not help.
func TestFinalFailures(t *testing.T) {
	t.Parallel()
	for _, fails := range [][]Event{
		{Go{}, Prepared{}, StartFailed{Reason: "no such image"}},
		{Go{}, PrepareFailed{Reason: "no such scheme"}},
		{Go{}, Prepared{}, StartFailed{Reason: "busy", Recoverable: true}},
		{Go{}, PrepareFailed{Reason: "busy", Recoverable: true}},
	} {
		s, _ := transcript(View{}, New(start), fails...)
		told := slices.ContainsFunc(s.State.Events, (*drover.TaskEvent).Final)
		require.Equal(t, !strings.Contains(fmt.Sprint(fails), "busy"), told, fails)
	}
}
