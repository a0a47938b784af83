package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func deps() Deps {
	return Deps{Clock: clock.Wall{}, IDs: id.Random{}, Log: slog.New(slog.DiscardHandler)}
}

// running opens a log with one sink and runs it until stop.
func running(t testing.TB, p Place) (l *Log, stop func()) {
	t.Helper()
	s, err := Open(t.Context(), p, deps())
	require.NoError(t, err)
	l = New(Config{Node: "n"}, deps(), s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.Run(ctx) }() // ends with stop
	return l, sync.OnceFunc(func() { cancel(); <-done; l.Close() })
}

func change(path string) *Event {
	return &Event{Stage: Received, Class: Change, Method: "PUT", Path: path, AccessorID: "a", Allowed: true}
}

func filePlace(folder string, f File) Place {
	f.Path = filepath.Join(folder, "audit.log")
	return Place{Name: "audit", Enforced: true, Folder: filepath.Join(folder, "state"), File: &f, Node: "n"}
}

// whole is what is checked with everything that there is to check with.
func whole(t testing.TB, folder string) Check {
	t.Helper()
	key, err := ReadKey(filepath.Join(folder, "state", "audit.key"))
	require.NoError(t, err)
	head, err := ReadHead(filepath.Join(folder, "state", "audit.head"))
	require.NoError(t, err)
	return Check{Key: key, Head: &head}
}

func logs(t testing.TB, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "audit*.log"))
	require.NoError(t, err)
	return paths
}

// What strange callers write stands in one line, is cut, and comes back as it was.
func TestALineIsJSONWhateverIsInIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		e := change(rapid.String().Draw(rt, "path"))
		e.UserAgent, e.Object = rapid.String().Draw(rt, "agent"), strings.Repeat(rapid.String().Draw(rt, "object"), 100)
		e.Stage, e.Reason, e.Status = Complete, "\"}\n{", 403
		var c chain
		line := c.add(nil, e.encode(nil, "n\n"))
		require.Equal(rt, 1, bytes.Count(line, []byte("\n")))
		var got struct {
			Payload struct {
				Stage   string
				Request struct{ Endpoint string }
			}
			Seq uint64
		}
		require.NoError(rt, json.Unmarshal(line, &got))
		require.EqualValues(rt, 1, got.Seq)
		if len(e.Path) <= maxPath {
			require.Equal(rt, strings.ToValidUTF8(e.Path, "\ufffd"), strings.ToValidUTF8(got.Payload.Request.Endpoint, "\ufffd"))
		}
		require.Less(rt, len(line), 16<<10)
	})
}

func TestTheChainGoesOnOverFilesAndRestarts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 3 {
		l, stop := running(t, filePlace(folder, File{RotateBytes: 2000, Sync: true}))
		for n := range 5 {
			require.NoError(t, l.Record(change(fmt.Sprint("/", n)), true))
		}
		stop()
	}
	paths := logs(t, folder)
	require.Greater(t, len(paths), 3)
	v, err := Verify(paths, whole(t, folder))
	require.NoError(t, err)
	require.EqualValues(t, v.Last.Seq, v.Lines)
	require.Equal(t, v.Sealed, v.Last.Seq)
	require.Equal(t, 3, v.Seals)

	_, err = Verify(paths[1:], whole(t, folder))
	require.NoError(t, err, "the oldest may be gone")
	_, err = Verify(append(paths[:1:1], paths[2:]...), whole(t, folder))
	require.ErrorContains(t, err, "lines are missing")
	info, err := os.Stat(filepath.Join(folder, "audit.log"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// Whatever somebody changes in the files, Verify names that line or the one after it.
func TestEveryChangeIsFound(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, stop := running(t, filePlace(folder, File{}))
	for n := range 20 {
		require.NoError(t, l.Record(change(fmt.Sprint("/", n)), true))
	}
	stop()
	path := filepath.Join(folder, "audit.log")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want := whole(t, folder)
	copied := filepath.Join(t.TempDir(), "copy")
	rapid.Check(t, func(rt *rapid.T) {
		lines := bytes.SplitAfter(bytes.Clone(text), []byte("\n"))
		lines = lines[:len(lines)-1]
		at := rapid.IntRange(0, len(lines)-1).Draw(rt, "line")
		switch rapid.SampledFrom([]string{"byte", "gone", "twice", "swapped", "cut"}).Draw(rt, "what") {
		case "byte":
			i := rapid.IntRange(0, len(lines[at])-1).Draw(rt, "byte")
			lines[at] = bytes.Clone(lines[at])
			lines[at][i] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		case "gone":
			lines = append(lines[:at], lines[at+1:]...)
		case "twice":
			lines = append(lines[:at+1], lines[at:]...)
		case "swapped":
			other := (at + 1) % len(lines)
			lines[at], lines[other] = lines[other], lines[at]
		case "cut":
			lines = lines[:at]
		}
		require.NoError(rt, os.WriteFile(copied, bytes.Join(lines, nil), 0o600))
		_, err := Verify([]string{copied}, want)
		require.Error(rt, err)
	})
}

// Who has the machine now has no key of seals before: a chain that was computed anew is found.
func TestAForgedChainLacksTheSeals(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, stop := running(t, filePlace(folder, File{}))
	require.NoError(t, l.Record(change("/delete"), true))
	stop()
	want := whole(t, folder)
	st, c, err := openState(filepath.Join(folder, "state"), "audit") // what the intruder finds
	require.NoError(t, err)
	st.close()
	require.NotEqual(t, want.Key, c.key)
	forged := chain{epoch: 1, key: c.key}
	empty := ""
	b := forged.add(nil, record{Type: startType, Former: &empty}.body())
	b = forged.add(b, change("/read").encode(nil, "n"))
	b = forged.seal(b, time.Now())
	path := filepath.Join(folder, "forged")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = Verify([]string{path}, Check{})
	require.NoError(t, err, "without a key it looks whole")
	_, err = Verify([]string{path}, Check{Key: want.Key})
	require.ErrorContains(t, err, "forged:3: the seal was made with another key")
}

// A line that was half written when the process was killed, and a file that somebody cut or took away while it did not run.
func TestTheAgentTellsWhatItFinds(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (folder, path string, text []byte) {
		folder = t.TempDir()
		l, stop := running(t, filePlace(folder, File{}))
		for n := range 3 {
			require.NoError(t, l.Record(change(fmt.Sprint("/", n)), true))
		}
		stop()
		path = filepath.Join(folder, "audit.log")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return folder, path, text
	}
	again := func(t *testing.T, folder string) {
		l, stop := running(t, filePlace(folder, File{}))
		require.NoError(t, l.Record(change("/again"), true))
		stop()
	}
	t.Run("torn", func(t *testing.T) {
		t.Parallel()
		folder, path, text := begin(t)
		require.NoError(t, os.WriteFile(path, append(text, `{"created_at":"20`...), 0o600))
		_, err := Verify([]string{path}, Check{})
		require.ErrorContains(t, err, "the end of the line is missing")
		again(t, folder)
		_, err = Verify([]string{path}, whole(t, folder))
		require.NoError(t, err)
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.Replace(written, []byte(`":"20`+"\n"), []byte(`":"21`+"\n"), 1), 0o600))
		_, err = Verify([]string{path}, Check{})
		require.ErrorContains(t, err, "the line before was changed")
	})
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		folder, path, text := begin(t)
		lines := bytes.SplitAfter(text, []byte("\n"))
		require.NoError(t, os.WriteFile(path, bytes.Join(lines[:2], nil), 0o600))
		again(t, folder)
		_, err := Verify([]string{path}, Check{})
		require.ErrorContains(t, err, "audit.log:3: lines 3 to 5 are missing")
	})
	t.Run("taken away", func(t *testing.T) {
		t.Parallel()
		folder, path, _ := begin(t)
		require.NoError(t, os.Rename(path, path+".old"))
		again(t, folder)
		_, err := Verify([]string{path}, Check{})
		require.NoError(t, err)
		_, err = Verify([]string{path, path + ".old"}, whole(t, folder))
		require.NoError(t, err, "the chain goes on in the new file")
	})
	t.Run("somebody's", func(t *testing.T) {
		t.Parallel()
		folder, path, _ := begin(t)
		require.NoError(t, os.WriteFile(path, []byte("notes\n"), 0o600))
		_, err := Open(t.Context(), filePlace(folder, File{}), deps())
		require.ErrorContains(t, err, "its end is no audit")
	})
}

// A file that is moved while the agent runs, as logrotate does.
func TestAFileThatIsMovedIsBegunAnew(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, stop := running(t, filePlace(folder, File{}))
	defer stop()
	require.NoError(t, l.Record(change("/1"), true))
	path := filepath.Join(folder, "audit.log")
	require.NoError(t, os.Rename(path, path+".1"))
	require.NoError(t, l.Record(change("/2"), true))
	_, err := Verify([]string{path, path + ".1"}, Check{})
	require.NoError(t, err)
}

// full is a backend that can be full.
type full struct {
	mu    sync.Mutex
	full  bool
	lines []byte
}

func (f *full) start(*chain, time.Time) (*record, error) { return nil, nil }
func (f *full) close()                                   {}
func (f *full) write(lines []byte) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return false, errors.New("no space left on device")
	}
	f.lines = append(f.lines, lines...)
	return false, nil
}

// A full disk refuses what has to be recorded, and nothing else; with space again all goes on, and what was decided meanwhile is there.
func TestAFullDiskRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, enforced := range []bool{true, false} {
		p := filePlace(folder, File{})
		p.Enforced, p.Folder = enforced, ""
		s, err := Open(t.Context(), p, deps())
		require.NoError(t, err)
		to := &full{full: true}
		s.to = to
		l := New(Config{}, deps(), s)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = l.Run(ctx) }() // ends with cancel
		err = l.Record(change("/1"), true)
		if enforced {
			require.ErrorContains(t, err, `audit sink "audit": no space left on device`)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, l.Record(change("/2"), false), "its answer went already")
		to.mu.Lock()
		to.full = false
		to.mu.Unlock()
		require.NoError(t, l.Record(change("/3"), true))
		cancel()
		<-done
		l.Close()
		require.Contains(t, string(to.lines), `"endpoint":"/2"`)
		require.Contains(t, string(to.lines), `"endpoint":"/3"`)
		require.Equal(t, !enforced, strings.Contains(string(to.lines), `"endpoint":"/1"`))
	}
}

// A real disk that is full: what was written of a line is taken away again.
func TestADeviceWithoutSpace(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	b := &file{f: f}
	_, err = b.write([]byte("x"))
	require.ErrorContains(t, err, "no space left on device")
}

// Lines that a server may have taken are sent again as they were, before others.
func TestPostedLinesArriveInOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got [][]byte
	fail := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, text)
		if fail { // it took them, and nobody learns of it
			w.WriteHeader(http.StatusBadGateway)
		}
		require.Equal(t, "Bearer x", r.Header.Get("Authorization"))
	}))
	defer srv.Close()
	folder := t.TempDir()
	to := &HTTP{URL: srv.URL, Header: http.Header{"Authorization": {"Bearer x"}}}
	l, stop := running(t, Place{Name: "h", Enforced: true, Folder: folder, HTTP: to})
	require.ErrorContains(t, l.Record(change("/1"), true), "502 Bad Gateway")
	mu.Lock()
	fail = false
	mu.Unlock()
	require.NoError(t, l.Record(change("/2"), true))
	stop()
	require.GreaterOrEqual(t, len(got), 3)
	require.Equal(t, got[0], got[1])
	path := filepath.Join(folder, "lines")
	require.NoError(t, os.WriteFile(path, bytes.Join(got[1:], nil), 0o600))
	v, err := Verify([]string{path}, Check{})
	require.NoError(t, err)
	require.EqualValues(t, 4, v.Lines, "start, two lines, seal")
}

// Syslog over a socket: the test reads what arrives.
func TestSyslogGetsLines(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	lines := make(chan string, 10)
	go func() { // ends with its connection
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewScanner(c)
		for r.Scan() {
			lines <- r.Text()
		}
		close(lines)
	}()
	l, stop := running(t, Place{Name: "s", Enforced: true, Syslog: &Syslog{Network: "tcp", Address: ln.Addr().String()}})
	require.NoError(t, l.Record(change("/1"), true))
	stop()
	require.Contains(t, <-lines, `"event_type":"start"`)
	line := <-lines
	require.Contains(t, line, "drover-audit")
	require.Contains(t, line, `"endpoint":"/1"`)
	for range lines {
	}
}

// Callers that nobody knows cannot fill the disk, and the next line says how many were left out.
func TestAFloodOfStrangersIsBounded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, stop := running(t, filePlace(folder, File{}))
	for range 1000 {
		require.NoError(t, l.Record(&Event{Stage: Complete, Class: Change, Path: "/x", Status: 403}, false))
	}
	require.NoError(t, l.Record(change("/known"), true))
	stop()
	v, err := Verify(logs(t, folder), whole(t, folder))
	require.NoError(t, err)
	require.Less(t, v.Lines, 1000)
	require.EqualValues(t, 1000, uint64(v.Lines-3)+v.Dropped, "start, the known one and the seal are more")
}

func TestFiltersAndSamples(t *testing.T) {
	t.Parallel()
	l := New(Config{Every: 3, Filters: []Filter{{Endpoints: []string{"/v1/agent/*", "/v1/job/*/plan"}, Operations: []string{"put"}}}}, deps())
	for path, out := range map[string]bool{"/v1/agent/join": true, "/v1/job/x/plan": true, "/v1/job/x": false} {
		require.Equal(t, out, l.excluded(change(path)), path)
	}
	n := 0
	for range 9 {
		if l.Sampled() {
			n++
		}
	}
	require.Equal(t, 3, n)
	require.False(t, New(Config{}, deps()).Sampled())
}

// BenchmarkRecord is what a line costs who waits for it: 8 at once, with the disk's confirmation and without, and not waiting.
func BenchmarkRecord(b *testing.B) {
	for _, c := range []struct {
		name           string
		enforced, sync bool
	}{{"best-effort", false, false}, {"enforced", true, false}, {"enforced and synced", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			p := filePlace(b.TempDir(), File{Sync: c.sync})
			p.Enforced = c.enforced
			l, stop := running(b, p)
			b.SetParallelism(4)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.Record(change("/v1/job/web"), true); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
			stop()
		})
	}
}
