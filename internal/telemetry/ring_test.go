package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestRingPassesOnAndCopiesToWatchers(t *testing.T) {
	t.Parallel()
	var under bytes.Buffer
	ring := NewRing(slog.NewTextHandler(&under, &slog.HandlerOptions{Level: slog.LevelInfo}))
	log := slog.New(ring).With("part", "agent").WithGroup("g")
	require.False(t, log.Enabled(t.Context(), slog.LevelDebug))

	text, asJSON := ring.Tail(LevelTrace, false), ring.Tail(slog.LevelWarn, true)
	require.True(t, log.Enabled(t.Context(), LevelTrace))
	log.Debug("fine", "n", 1)
	log.Log(t.Context(), LevelTrace, "finer")
	log.Warn("careful", "n", 2)
	next := func(tail *Tail) string {
		line, err := tail.Next(t.Context())
		require.NoError(t, err)
		return string(line)
	}
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\S+ \[DEBUG\] fine: part=agent g.n=1\n$`, next(text))
	require.Contains(t, next(text), "[TRACE] finer: ")
	require.Contains(t, next(text), "careful")
	var line struct {
		Level string `json:"@level"`
		Msg   string `json:"@message"`
		Part  string `json:"@module"`
		G     struct{ N int }
	}
	require.NoError(t, json.Unmarshal([]byte(next(asJSON)), &line))
	require.Equal(t, 2, line.G.N)
	require.Equal(t, []string{"careful", "warn", "agent"}, []string{line.Msg, line.Level, line.Part})
	require.NotContains(t, under.String(), "fine")
	require.Contains(t, under.String(), "careful")

	text.Close()
	asJSON.Close()
	require.False(t, log.Enabled(t.Context(), slog.LevelDebug))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := text.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSlowWatcherIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	ring := NewRing(slog.DiscardHandler)
	tail := ring.Tail(slog.LevelInfo, false)
	log := slog.New(ring)
	for i := range tailDepth + 7 {
		log.Info(fmt.Sprint(i))
	}
	for range 2 {
		_, err := tail.Next(t.Context())
		require.NoError(t, err)
	}
	log.Info("after")
	var last []string
	for len(tail.lines) > 0 {
		line, err := tail.Next(t.Context())
		require.NoError(t, err)
		last = append(last, string(line))
	}
	require.Contains(t, last[len(last)-2], "7 log lines were dropped")
	require.Contains(t, last[len(last)-1], "after")
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]slog.Level{"trace": LevelTrace, "DEBUG": slog.LevelDebug, "warn": slog.LevelWarn} {
		got, err := ParseLevel(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := ParseLevel("loud")
	require.Error(t, err)
}

func TestMetricsInBothFormats(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	m.Counter("nomad.client.allocs.complete", "allocations that completed", "job").WithLabelValues("web").Add(3)
	m.Source(func(emit Emit) { emit("nomad.client.allocations.running", 2, "node_id", "n") })
	m.Source(func(emit Emit) { emit("nomad.nomad.job_status.running", 5, "host", "h") })
	m.Requests()("GET /v1/jobs", 200, 3*time.Millisecond)
	get := func(query string) (int, string) {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/metrics"+query, nil))
		return w.Code, w.Body.String()
	}
	_, body := get("")
	var s summary
	require.NoError(t, json.Unmarshal([]byte(body), &s))
	find := func(list []gauge, name string) *gauge {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
		return nil
	}
	require.Equal(t, &gauge{"nomad.nomad.job_status.running", 5, map[string]string{"host": "h"}},
		find(s.Gauges, "nomad.nomad.job_status.running"))
	require.InDelta(t, 2, find(s.Gauges, "nomad.client.allocations.running").Value, 0)
	require.Contains(t, body, `{"Name":"nomad.client.allocs.complete","Count":3`)
	require.Contains(t, body, `"Name":"drover.http.request","Count":1`)
	_, body = get("?format=prometheus")
	require.Contains(t, body, `nomad_client_allocs_complete{job="web"} 3`)
	require.Contains(t, body, `nomad_nomad_job_status_running{host="h"} 5`)
	code, _ := get("?format=xml")
	require.Equal(t, http.StatusBadRequest, code)
}
