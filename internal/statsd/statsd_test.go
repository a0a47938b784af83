package statsd

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measured is a registry with one metric of each kind.
func measured() *telemetry.Metrics {
	m := telemetry.NewMetrics(clock.Wall{})
	m.Source(func(emit telemetry.Emit) {
		emit("nomad.client.test", 1.5, "job", "web\nnomad.evil:1|c")
		emit("nomad.client.cold", -3, "job", "")
	})
	m.Counter("drover.test.count", "help", "by").WithLabelValues("a b").Add(7)
	s := m.Samples()
	s.Took("nomad.test.took", 10*time.Millisecond)
	s.Took("nomad.test.took", 30*time.Millisecond)
	m.Durations("drover.test.seconds", "help").WithLabelValues().Observe(2)
	return m
}

// of keeps the lines about what measured has.
func of(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "test") || strings.Contains(line, "cold") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// run runs a pusher until stop.
func run(t *testing.T, cfg Config, log *slog.Logger, m *telemetry.Metrics) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	p := New(cfg, Deps{Readings: m.Readings, Clock: clock.Wall{}, Log: log})
	go func() { defer close(done); _ = p.Run(ctx) }() // ends with stop
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// receive reads packets of a UDP socket until the lines of measured are there.
func receive(t *testing.T, conn net.PacketConn, want int) (lines []string) {
	t.Helper()
	buf := make([]byte, 64<<10)
	for len(lines) < want {
		n, _, err := conn.ReadFrom(buf)
		require.NoError(t, err)
		require.LessOrEqual(t, n, packet)
		lines = append(lines, of(string(buf[:n]))...)
	}
	return lines
}

func socket(t *testing.T) net.PacketConn {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

var quiet = slog.New(slog.DiscardHandler)

func TestStatsdGetsMetricsByUDP(t *testing.T) {
	t.Parallel()
	conn := socket(t)
	run(t, Config{Statsd: conn.LocalAddr().String(), Host: "host.example", Interval: time.Hour}, quiet, measured())
	require.ElementsMatch(t, []string{
		"nomad.host.example.client.test.web_nomad.evil_1_c:1.5|g", "nomad.host.example.client.cold._:0|g",
		"drover.test.count.a_b:7|c", "nomad.test.took:20|ms|@0.5", "drover.test.seconds:2000|ms",
	}, receive(t, conn, 5))
}

func TestDatadogGetsTags(t *testing.T) {
	t.Parallel()
	conn := socket(t)
	run(t, Config{
		Datadog: conn.LocalAddr().String(), Host: "h", Tags: []string{"team:a,b", "prod"}, Interval: time.Hour,
	}, quiet, measured())
	require.ElementsMatch(t, []string{
		"nomad.client.test:1.5|g|#host:h,team:a_b,prod,job:web_nomad.evil:1_c", "nomad.client.cold:0|g|#host:h,team:a_b,prod",
		"drover.test.count:7|c|#host:h,team:a_b,prod,by:a_b", "nomad.test.took:20|ms|@0.5|#host:h,team:a_b,prod",
		"drover.test.seconds:2000|ms|#host:h,team:a_b,prod",
	}, receive(t, conn, 5))
}

func TestStatsiteGetsAStream(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	stop := run(t, Config{Statsite: ln.Addr().String(), Interval: time.Hour}, quiet, measured())
	conn, err := ln.Accept()
	require.NoError(t, err)
	defer conn.Close()
	buf := make([]byte, 1)
	var text []byte
	for len(of(string(text))) < 5 || text[len(text)-1] != '\n' {
		_, err := io.ReadFull(conn, buf)
		require.NoError(t, err)
		text = append(text, buf[0])
	}
	require.Contains(t, of(string(text)), "nomad.test.took:20|ms")
	require.Contains(t, of(string(text)), "nomad.client.test.web_nomad.evil_1_c:1.5|g", "no host, as its name is switched off")
	stop()
	_, err = io.ReadAll(conn)
	require.NoError(t, err, "the stream ends in order")
}

// A receiver adds up by itself: it gets what came since the last time.
func TestOnlyWhatCameIsSent(t *testing.T) {
	t.Parallel()
	c := changes{}
	counter := func(v float64, labels ...[2]string) telemetry.Reading {
		return telemetry.Reading{Name: "c", Kind: telemetry.Counter, Value: v, Labels: labels}
	}
	timed := func(n uint64, sum float64) telemetry.Reading {
		return telemetry.Reading{Name: "t", Kind: telemetry.Timed, Count: n, Value: sum}
	}
	other := [2]string{"a", "b"}
	require.Equal(t, []telemetry.Reading{counter(5), timed(2, 5)}, c.of([]telemetry.Reading{counter(5), timed(2, 10)}))
	require.Empty(t, c.of([]telemetry.Reading{counter(5), timed(2, 10)}))
	require.Equal(t, []telemetry.Reading{counter(2), counter(1, other), timed(1, 3)},
		c.of([]telemetry.Reading{counter(7), counter(1, other), timed(3, 13)}))
	require.Equal(t, []telemetry.Reading{counter(1)}, c.of([]telemetry.Reading{counter(1)}), "it began anew")
	require.Len(t, c, 1, "what is gone is forgotten")
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	told chan struct{}
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.told <- struct{}{}:
	default:
	}
	return b.text.Write(line)
}

// A receiver that is missing is told once, and the others get their metrics.
func TestAReceiverThatIsMissing(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := ln.Addr().String()
	require.NoError(t, ln.Close())
	conn := socket(t)
	log := &lockedBuffer{told: make(chan struct{}, 1)}
	stop := run(t, Config{Statsite: nobody, Datadog: conn.LocalAddr().String(), Interval: time.Millisecond},
		slog.New(slog.NewTextHandler(log, nil)), measured())
	<-log.told
	receive(t, conn, 5)
	receive(t, conn, 4)
	stop()
	require.Equal(t, 1, strings.Count(log.text.String(), "\n"), log.text.String())
	require.Contains(t, log.text.String(), "key=telemetry.statsite_address")
}

// Metrics that take long to read are read less often.
func TestReadingTakesABoundedShareOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reads := 0
		p := New(Config{Interval: time.Second}, Deps{Clock: clock.Wall{}, Log: quiet, Readings: func() []telemetry.Reading {
			reads++
			time.Sleep(time.Second)
			return nil
		}})
		require.NoError(t, p.Run(ctx))
		require.LessOrEqual(t, reads, 3600/shareOfTime)
		require.False(t, Config{}.Enabled())
	})
}
