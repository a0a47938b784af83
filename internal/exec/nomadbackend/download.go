package nomadbackend

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Read implements execution.Files. The bytes are counted: what was cut on its way is fetched, or is an error, and never a
// shorter file.
func (f *files) Read(ctx context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	d := &download{f: f, ctx: ctx, request: r}
	err := f.b.again(ctx, d.open, errCut, errBroken)
	if err != nil {
		return execution.FileInfo{}, nil, err
	}
	d.left = max(d.info.Size-r.Offset, 0)
	if r.Length > 0 {
		d.left = min(d.left, r.Length)
	}
	d.counts = d.left > 0 // files of the kernel's say that they have nothing
	info := d.info
	info.Path = path.Base(r.Path)
	return info, d, nil
}

// download is a file on its way.
type download struct {
	f       *files
	ctx     context.Context // of the request
	request execution.FileRequest
	info    execution.FileInfo
	counts  bool  // left is known
	left    int64 // bytes that are still to come
	got     int64
	resumed int // since the last byte came

	from  *bufio.Reader
	close func()
}

// open begins, or goes on where the last one was cut.
func (d *download) open() error {
	if d.close != nil {
		d.close()
	}
	ctx, cancel := context.WithCancel(d.ctx)
	in, out := io.Pipe()
	d.close = func() { cancel(); _ = in.Close() }
	length := d.request.Length
	if d.got > 0 {
		length = d.left
	}
	offset := d.request.Offset + d.got
	go func() { // ends with the command; or with close, which cancels
		err := d.f.do(
			ctx, readScript, d.request.Privileged, nil, out, safe(d.request.Path), strconv.FormatInt(offset+1, 10), strconv.FormatInt(length, 10),
		)
		_ = out.CloseWithError(err) // nil: EOF
	}()
	d.from = bufio.NewReader(in)
	line, err := d.from.ReadString('\n')
	if err != nil {
		d.close()
		if errors.Is(err, io.EOF) {
			err = drover.Errorf(drover.Unavailable, "reading %s: nothing came from the Nomad cluster", d.request.Path)
		}
		return err
	}
	info, err := parseStat(strings.TrimSuffix(line, "\n"))
	if err == nil && d.got > 0 && (info.Size != d.info.Size || !info.ModTime.Equal(d.info.ModTime)) {
		err = drover.Errorf(drover.Unavailable, "%s changed while it was read, and the Nomad cluster cut it", d.request.Path)
	}
	if err != nil {
		d.close()
		return err
	}
	d.info = info
	return nil
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	for {
		n, err := d.from.Read(p)
		d.left -= int64(n)
		d.got += int64(n)
		if n > 0 {
			d.resumed = 0
			return n, nil // an error comes again
		}
		cut := errors.Is(err, errCut) || errors.Is(err, errBroken)
		switch {
		case err == nil:
			continue
		case d.counts && d.left <= 0:
			return 0, io.EOF // whatever was cut was not of the file
		case errors.Is(err, io.EOF) && d.left > 0:
			err = io.ErrUnexpectedEOF
		}
		if !cut || !d.counts || d.resumed >= tries {
			return 0, err
		}
		d.resumed++
		if again := d.f.b.again(d.ctx, d.open, errCut, errBroken); again != nil {
			return 0, again
		}
	}
}

// Close implements io.Closer.
func (d *download) Close() error {
	d.close()
	return nil
}

// Archive implements execution.Files. It is repeated as long as nothing of it came: a second one need not be the same.
func (f *files) Archive(ctx context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	var a *archive
	err := f.b.again(ctx, func() (err error) {
		if err = f.do(ctx, `cd -- "$1" 2>/dev/null || exit 44`, r.Privileged, nil, nil, safe(r.Path)); err == nil {
			a = f.archive(ctx, r)
			if _, err = a.Peek(1); err != nil {
				_ = a.Close() // never fails
			}
		}
		return err
	}, errCut, errBroken)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// archive is a folder on its way.
type archive struct {
	*bufio.Reader
	close func()
}

// archive starts tar in the runner, without waiting for it. The pipe between gives flow control: tar stops while
// nobody reads.
func (f *files) archive(ctx context.Context, r execution.FileRequest) *archive {
	ctx, cancel := context.WithCancel(ctx)
	in, out := io.Pipe()
	go func() { // ends with the command; or with Close, which cancels
		_ = out.CloseWithError(f.do(ctx, `tar -c -f - -C "$1" .`, r.Privileged, nil, out, safe(r.Path)))
	}()
	return &archive{bufio.NewReader(in), func() { cancel(); _ = in.Close() }}
}

// Close implements io.Closer.
func (a *archive) Close() error {
	a.close()
	return nil
}

// maxKept is how much of an upload is kept to be sent again.
const maxKept = 1 << 20

// rewinding returns a function that begins an input anew, and one that says whether it can once more.
func rewinding(input io.Reader) (begin func() io.Reader, repeatable func() bool) {
	if input == nil {
		return func() io.Reader { return nil }, func() bool { return true }
	}
	kept := &keeping{from: input}
	return kept.begin, kept.whole
}

// keeping keeps what was read of an input, while it is little.
type keeping struct {
	mu    sync.Mutex // held while something is read: who sent the first time may still do so
	from  io.Reader
	kept  []byte
	total int  // bytes that were read
	over  bool // and more than are kept
}

// begin returns a reader of the whole input. All readers share what was kept.
func (k *keeping) begin() io.Reader { return &replay{k, 0} }

// whole reports whether everything read so far is still kept, so that a new reader can begin at the first byte.
func (k *keeping) whole() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.over
}

// replay reads what is kept first.
type replay struct {
	of *keeping
	at int
}

// Read implements io.Reader.
func (r *replay) Read(p []byte) (int, error) {
	k := r.of
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.at < len(k.kept) {
		n := copy(p, k.kept[r.at:])
		r.at += n
		return n, nil
	}
	if r.at < k.total {
		return 0, drover.Errorf(drover.Unavailable, "the upload cannot be sent again")
	}
	n, err := k.from.Read(p)
	k.total += n
	r.at += n
	if k.over = k.total > maxKept; k.over {
		k.kept = nil
	} else {
		k.kept = append(k.kept, p[:n]...)
	}
	return n, err
}
