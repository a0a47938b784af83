package logsink

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is what the process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func opened(t *testing.T, cfg Config) (*Log, *output) {
	t.Helper()
	if cfg.Level == nil {
		cfg.Level = slog.LevelInfo
	}
	out := &output{}
	l, err := Open(cfg, out, clock.Wall{})
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l, out
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAllPlacesGetLinesOfTheLevel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs", "agent.log")
	l, out := opened(t, Config{Level: telemetry.LevelTrace, JSON: true, Source: true, File: &File{Path: path}})
	slog.New(l.Handler()).With("part", "x").Log(t.Context(), telemetry.LevelTrace, "hello")
	slog.New(l.Handler()).Log(t.Context(), telemetry.LevelTrace-1, "not this")
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), `"level":"TRACE"`)
	require.Contains(t, out.String(), `logsink_test.go`)
	require.Equal(t, out.String(), text(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm()|0o040, "the umask may take more")
}

func TestAFolderGetsTheUsualName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, _ := opened(t, Config{File: &File{Path: folder}})
	slog.New(l.Handler()).Info("a")
	l, _ = opened(t, Config{File: &File{Path: filepath.Join(folder, "new") + "/"}})
	slog.New(l.Handler()).Info("b")
	require.Contains(t, text(t, filepath.Join(folder, "drover.log")), "msg=a")
	require.Contains(t, text(t, filepath.Join(folder, "new", "drover.log")), "msg=b")
}

func TestAFileThatCannotBeOpenedNamesItsKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := Open(Config{Level: slog.LevelInfo, File: &File{Path: filepath.Join(path, "below")}}, io.Discard, clock.Wall{})
	require.ErrorContains(t, err, "log_file: ")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestAFileIsReplacedBySize(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.log")
	foreign := filepath.Join(folder, "a-2nd.log")
	require.NoError(t, os.WriteFile(foreign, nil, 0o600))
	l, _ := opened(t, Config{File: &File{Path: path, RotateBytes: 200, Keep: 2}})
	for range 12 {
		slog.New(l.Handler()).Info(strings.Repeat("x", 60))
	}
	names := files(t, folder)
	require.Len(t, names, 4, "the file, two former ones, and somebody's: %v", names)
	for _, name := range names {
		require.LessOrEqual(t, len(text(t, filepath.Join(folder, name))), 200)
	}
	require.FileExists(t, foreign)
	require.NotEmpty(t, text(t, path))
}

// The age of a file outlives the agent: who is restarted each day would else never begin another.
func TestAFileIsReplacedByAge(t *testing.T) {
	t.Parallel()
	for _, json := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			folder := t.TempDir()
			cfg := Config{JSON: json, File: &File{Path: filepath.Join(folder, "a.log"), RotateAfter: 24 * time.Hour}}
			l, _ := opened(t, cfg)
			slog.New(l.Handler()).Info("first")
			time.Sleep(20 * time.Hour)
			l.Close()
			l, _ = opened(t, cfg)
			slog.New(l.Handler()).Info("second")
			require.Len(t, files(t, folder), 1)
			time.Sleep(4 * time.Hour)
			slog.New(l.Handler()).Info("third")
			require.Len(t, files(t, folder), 2)
			require.NotContains(t, text(t, cfg.File.Path), "second")
			require.Contains(t, text(t, cfg.File.Path), "third")
		})
	}
}

func TestAFileThatOthersRenamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.log")
	l, _ := opened(t, Config{File: &File{Path: path}})
	log := slog.New(l.Handler())
	log.Info("first")
	require.NoError(t, os.Rename(path, path+".1"))
	log.Info("second")
	require.Contains(t, text(t, path+".1"), "second")
	require.NoError(t, l.Reopen())
	log.Info("third")
	require.Contains(t, text(t, path), "third")

	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Error(t, l.Reopen(), "the log goes on where it was")
	log.Info("fourth")
	require.NoError(t, (&Log{}).Reopen(), "there is no file")
}

// A full disk costs lines, each of which is counted, and is told once and not by each line.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.log")
	l, out := opened(t, Config{File: &File{Path: path}})
	log := slog.New(l.Handler())
	log.Info("before")
	room := l.file.f
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		full, err = os.Open(path) // cannot be written either
	}
	require.NoError(t, err)
	l.file.f = full
	for range 5 {
		log.Info("lost")
	}
	require.Equal(t, 1, strings.Count(out.String(), "takes no lines"), out)
	require.Contains(t, out.String(), "log_file="+path)
	require.Equal(t, 5, strings.Count(out.String(), "msg=lost"), "the output got them")
	l.file.f = room
	require.NoError(t, full.Close())
	log.Info("after")
	require.Equal(t, 1, strings.Count(out.String(), "takes lines again"))
	require.Contains(t, out.String(), "missing=5")
	got := text(t, path)
	require.Contains(t, got, "lines=5")
	require.NotContains(t, got, "msg=lost")
	require.Contains(t, got, "msg=after")
}

func TestAFileThatCannotBeRenamedGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		path := filepath.Join(folder, "a.log")
		l, out := opened(t, Config{File: &File{Path: path, RotateBytes: 100}})
		log := slog.New(l.Handler())
		log.Info("first")
		require.NoError(t, os.Remove(path)) // so that there is nothing to rename
		log.Info(strings.Repeat("x", 80))
		log.Info(strings.Repeat("y", 80))
		require.Equal(t, 1, strings.Count(out.String(), "goes on all the same"), out)
		require.Contains(t, text(t, path), "yyy")
	})
}

// heard is a syslog's socket of the test's own.
func heard(t *testing.T) (path string, next func() string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	ln, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return path, func() string {
		buf := make([]byte, 4096)
		n, err := ln.Read(buf)
		require.NoError(t, err)
		return string(buf[:n])
	}
}

func TestSyslogGetsLinesWithTheirLevels(t *testing.T) {
	t.Parallel()
	path, next := heard(t)
	l, _ := opened(t, Config{Level: slog.LevelDebug, Syslog: &Syslog{Facility: "local3", Address: path}})
	log := slog.New(l.Handler())
	for level, severity := range map[slog.Level]string{
		slog.LevelDebug: "<159>", slog.LevelInfo: "<158>", slog.LevelWarn: "<156>", slog.LevelError: "<155>",
	} {
		log.WithGroup("g").With("a", 1).Log(t.Context(), level, "two words", "b", 2)
		got := next()
		require.True(t, strings.HasPrefix(got, severity), got)
		require.Contains(t, got, `msg="two words" g.a=1 g.b=2`)
		require.Contains(t, got, " drover[")
		require.NotContains(t, got, "time=")
	}
}

func TestASyslogThatIsNotThereNamesItsKey(t *testing.T) {
	t.Parallel()
	_, err := Open(Config{Level: slog.LevelInfo, Syslog: &Syslog{Facility: "LOCAL0", Address: filepath.Join(t.TempDir(), "none")}},
		io.Discard, clock.Wall{})
	require.ErrorContains(t, err, "enable_syslog: no syslog answers")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, err = Open(Config{Level: slog.LevelInfo, Syslog: &Syslog{Facility: "LOCAL9"}}, io.Discard, clock.Wall{})
	require.ErrorContains(t, err, "syslog_facility: ")
}

// stuck is a syslog that takes nothing until it is let go.
type stuck struct {
	taken chan string
	fails error
}

func (s *stuck) send(_ slog.Level, line string) error { s.taken <- line; return s.fails }
func (s *stuck) close()                               {}

// A syslog that stands still neither holds up who logs nor the end of the agent.
func TestASyslogThatStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, to := &output{}, &stuck{taken: make(chan string)}
		q := newQueue(to, slog.New(slog.NewTextHandler(out, nil)), clock.Wall{})
		log := slog.New(newLeveled(Config{Level: slog.LevelInfo}, q))
		for range waiting + 20 {
			log.Info("line")
		}
		synctest.Wait()
		require.Equal(t, 1, strings.Count(out.String(), "takes no lines"), out)
		for range waiting / 2 {
			<-to.taken
		}
		synctest.Wait()
		require.Equal(t, 1, strings.Count(out.String(), "takes lines again"), out)
		began := time.Now()
		q.close()
		require.Equal(t, farewell, time.Since(began))
		log.Info("too late")
		for range waiting { // so that the goroutine ends
			select {
			case <-to.taken:
			case <-q.ended:
			}
		}
	})
}

func TestASyslogThatEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, to := &output{}, &stuck{taken: make(chan string, 100), fails: syscall.ECONNREFUSED}
		q := newQueue(to, slog.New(slog.NewTextHandler(out, nil)), clock.Wall{})
		for range 3 {
			q.put(slog.LevelInfo, "line")
		}
		q.close()
		require.Len(t, to.taken, 3)
		require.Equal(t, 1, strings.Count(out.String(), "takes no lines"), out)
		require.Contains(t, out.String(), "connection refused")
	})
}

func TestFacilities(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"kern": 0, "AUTHPRIV": 10, "Local7": 23} {
		got, err := Facility(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := Facility("")
	require.Error(t, err)
}
