package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/rotation"
)

// File configures a sink that is a file.
type File struct {
	Path        string
	Mode        os.FileMode   // default 0600
	RotateBytes int64         // a file is renamed once it has so many; 0 = never
	RotateAfter time.Duration // or once it is so old; 0 = never
	Keep        int           // renamed files that stay; 0 = all
	Sync        bool          // lines outlive a loss of power, not only the process
}

// file is the backend. It notices that the file was renamed or removed, and goes on in a new one.
type file struct {
	File
	node   string
	f      *os.File
	info   os.FileInfo
	size   int64
	opened time.Time // when the file was begun
	fresh  bool      // the start was not written yet
	stays  time.Time // until then it is not renamed: that failed
}

// start opens the file if it is not, and goes on with a new one when it is large or old enough.
func (f *file) start(c *chain, now time.Time) (*record, error) {
	reason := "restart"
	if f.f != nil {
		info, err := os.Stat(f.Path)
		switch {
		case err != nil || !os.SameFile(info, f.info):
			reason = "moved"
		case f.due(now):
			f.close()
			reason = "rotation"
			if err := rotation.Aside(f.Path, now, f.Keep); err != nil {
				reason, f.stays = "not renamed: "+err.Error(), now.Add(time.Hour)
			}
		default:
			return nil, nil
		}
		f.close()
	}
	if err := f.open(now); err != nil {
		return nil, err
	}
	r, err := f.resume(c)
	if err != nil {
		f.close()
		return nil, err
	}
	r.Reason, r.Node, f.fresh = reason, f.node, true
	if c.seq == 0 {
		r.Reason = "first"
	}
	return r, nil
}

// due reports whether it is time for another file.
func (f *file) due(now time.Time) bool {
	large := f.RotateBytes > 0 && f.size >= f.RotateBytes
	old := f.RotateAfter > 0 && now.Sub(f.opened) >= f.RotateAfter
	return f.size > 0 && (large || old) && now.After(f.stays)
}

// try opens the file, and sees whether its end is one that it can go on from.
func (f *file) try() error {
	defer f.close()
	if err := f.open(time.Time{}); err != nil {
		return err
	}
	_, err := f.resume(&chain{})
	return err
}

// open opens the file, and makes it if it is not there.
func (f *file) open(now time.Time) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	opened, err := os.OpenFile(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, cmp.Or(f.Mode, 0o600))
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err == nil && info.Size() == 0 {
		err = opened.Chmod(cmp.Or(f.Mode, 0o600)) // whatever the umask
	}
	if err != nil {
		opened.Close()
		return err
	}
	f.f, f.info, f.size, f.opened = opened, info, info.Size(), now
	if f.Sync && f.size == 0 {
		return rotation.SyncFolder(filepath.Dir(f.Path))
	}
	return nil
}

// tail is how much of a file's end is read; a line is shorter.
const tail = 64 << 10

// resume finds out how the chain goes on, and what a start has to tell of that. What the file has counts where it is newer than what the
// agent remembers.
func (f *file) resume(c *chain) (*record, error) {
	end := make([]byte, min(f.size, tail))
	if _, err := f.f.ReadAt(end, f.size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r := &record{}
	if n := bytes.LastIndexByte(end, '\n'); len(end) > 0 && n < len(end)-1 {
		torn := end[n+1:]
		sum := sha256.Sum256(torn)
		r.Torn, r.TornHash = len(torn), hexOf(sum[:])
		end = end[:n+1]
	}
	if len(end) > 0 {
		f.opened = f.begun()
		lines := bytes.Split(bytes.TrimSuffix(end, []byte("\n")), []byte("\n"))
		if err := f.follow(c, r, lines); err != nil {
			return nil, err
		}
	}
	former := c.head
	r.Former = &former
	return r, nil
}

// begun is when the file was begun, as its first line says.
func (f *file) begun() time.Time {
	line, err := bufio.NewReader(io.NewSectionReader(f.f, 0, tail)).ReadBytes('\n')
	if err != nil {
		return f.opened
	}
	_, r, err := open(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		return f.opened
	}
	return r.CreatedAt
}

// follow takes up the last line that the file has.
func (f *file) follow(c *chain, r *record, lines [][]byte) error {
	for _, line := range slices.Backward(lines) {
		_, last, err := open(line)
		if err != nil { // the torn end of a line, which a later start told of
			continue
		}
		if last.Seq < c.seq {
			r.Missing = c.seq - last.Seq
		} else {
			c.seq = last.Seq
		}
		c.head = last.Hash
		if last.Type == sealType && last.Epoch == c.epoch { // the agent was killed before it replaced the key
			c.epoch, c.key = c.epoch+1, nextKey(c.key)
		}
		return nil
	}
	return drover.Errorf(drover.Invalid, "%s: it is not empty, and its end is no audit: name another file, or move it away", f.Path)
}

// write appends whole lines. What was written of them in vain is taken away.
func (f *file) write(lines []byte) (kept bool, err error) {
	n, err := f.f.Write(lines)
	if err == nil && f.Sync {
		err = f.f.Sync()
	}
	if err == nil {
		f.size += int64(n)
		f.fresh = false
		return false, nil
	}
	e := f.f.Truncate(f.size)
	if e != nil || f.fresh {
		f.close() // the next batch looks at what is there
	}
	return false, errors.Join(err, e)
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close() // it was written by Write
		f.f = nil
	}
}
