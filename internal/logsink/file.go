package logsink

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/rotation"
)

// File is a file of log lines.
type File struct {
	Path        string        // of a folder, or with a slash at the end: drover.log in it
	RotateBytes int64         // a line that would make the file larger goes into a new one; 0 = never
	RotateAfter time.Duration // so does a line when the file is so old; 0 = never
	Keep        int           // former files that stay; 0 = all
}

const (
	fileName = "drover.log"
	fileMode = 0o640
	// patience is how long a file that could not be renamed goes on.
	patience = time.Hour
)

// file takes whole lines.
type file struct {
	File
	clock     clock.Clock
	formatted func(io.Writer) slog.Handler
	output    *slog.Logger // where it is told that the file takes no lines

	mu    sync.Mutex // guards what follows
	f     *os.File
	size  int64
	plain bool // it is no device, pipe or socket, which are never renamed: /dev/null is everybody's
	begun time.Time
	stays time.Time // until then it is not renamed: that failed
	lost  int       // lines that it did not take since the last that it took
}

// openFile opens the file, and makes it and its folder where they are not there. Errors: Invalid.
func openFile(cfg File, formatted func(io.Writer) slog.Handler, output *slog.Logger, c clock.Clock) (*file, error) {
	if info, err := os.Stat(cfg.Path); strings.HasSuffix(cfg.Path, string(filepath.Separator)) || err == nil && info.IsDir() {
		cfg.Path = filepath.Join(cfg.Path, fileName)
	}
	f := &file{File: cfg, clock: c, formatted: formatted, output: output}
	if err := f.open(); err != nil {
		return nil, drover.Errorf(drover.Invalid, "log_file: %w", err)
	}
	return f, nil
}

// open opens the file at the path, in place of the one before.
func (f *file) open() error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o750); err != nil {
		return err
	}
	opened, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return err
	}
	if f.f != nil {
		_ = f.f.Close() // its lines were written by Write
	}
	f.f, f.size, f.begun, f.plain = opened, info.Size(), f.clock.Now(), info.Mode().IsRegular()
	if f.size > 0 {
		f.begun = firstTime(opened, f.begun)
	}
	return nil
}

// firstTime is the time of the file's first line, which says how old the file is; else otherwise.
func firstTime(r io.ReaderAt, otherwise time.Time) time.Time {
	head := make([]byte, 128)
	n, _ := r.ReadAt(head, 0) // a short file is no error
	for _, key := range []string{`time=`, `"time":"`} {
		_, text, ok := bytes.Cut(head[:n], []byte(key))
		if end := bytes.IndexAny(text, `" `); ok && end > 0 {
			if at, err := time.Parse(time.RFC3339Nano, string(text[:end])); err == nil {
				return at
			}
		}
	}
	return otherwise
}

// reopen goes on in what is at the path now.
func (f *file) reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// Write takes a line. It never fails: who logs can do nothing about that.
func (f *file) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.clock.Now(); f.due(int64(len(line)), now) {
		if err := f.rotate(now); err != nil {
			f.stays = now.Add(patience)
			f.output.Warn("the log's file is full or old, and goes on all the same", "log_file", f.Path, "error", err)
		}
	}
	if f.lost > 0 && f.put(f.gap()) == nil {
		f.output.Info("the log's file takes lines again", "log_file", f.Path, "missing", f.lost)
		f.lost = 0
	}
	var err error
	if f.lost == 0 {
		err = f.put(line)
	}
	if f.lost > 0 || err != nil {
		if f.lost++; f.lost == 1 {
			f.output.Error("the log's file takes no lines: the agent goes on, and tries again", "log_file", f.Path, "error", err)
		}
	}
	return len(line), nil
}

// put appends. What was written of it in vain is taken away.
func (f *file) put(lines []byte) error {
	n, err := f.f.Write(lines)
	if err == nil {
		f.size += int64(n)
		return nil
	}
	if n > 0 {
		_ = f.f.Truncate(f.size) // a torn line stays if the disk does not do that either
	}
	return err
}

// gap is the line that tells of those that are missing.
func (f *file) gap() []byte {
	var line bytes.Buffer
	slog.New(f.formatted(&line)).Error("lines are missing here, as the file did not take them", "lines", f.lost)
	return line.Bytes()
}

// due reports whether it is time for another file.
func (f *file) due(more int64, now time.Time) bool {
	large := f.RotateBytes > 0 && f.size+more > f.RotateBytes
	old := f.RotateAfter > 0 && now.Sub(f.begun) >= f.RotateAfter
	return f.plain && f.size > 0 && (large || old) && !now.Before(f.stays)
}

// rotate renames the file and begins another.
func (f *file) rotate(now time.Time) error {
	err := rotation.Aside(f.Path, now, f.Keep)
	if opening := f.open(); opening != nil {
		return opening
	}
	return err
}

func (f *file) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.f.Close() // its lines were written by Write
}
