package httpapi

import (
	"errors"
	"fmt"
	"io"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// sniffed is how many bytes tell what a file holds.
const sniffed = 512

// content is a file of a runner as an io.ReadSeeker. Bytes are read as a stream, and a seek opens the file anew where it
// leads: the file is never held, however large it is. It is used by one goroutine.
type content struct {
	open func(offset, length int64) (execution.FileInfo, io.ReadCloser, error) // length 0: to the end

	info  execution.FileInfo
	start []byte        // the file's first bytes
	body  io.ReadCloser // nil if the file must be opened before it is read on
	at    int64         // where body reads on
	pos   int64         // where the reader reads on
	end   int64         // where reading will end
	err   error         // why the answer cannot be given in full
}

// begin opens the file and reads its first bytes; with peek nothing but these. Errors: those of opening and reading;
// Invalid: a directory.
func (c *content) begin(peek bool) error {
	length := int64(0)
	if peek {
		length = sniffed
	}
	var err error
	if c.info, c.body, err = c.open(0, length); err != nil {
		return err
	}
	if c.info.Type == "d" {
		return drover.Errorf(drover.Invalid, "path: it is a directory")
	}
	c.start = make([]byte, sniffed)
	n, err := io.ReadFull(c.body, c.start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	c.start, c.at = c.start[:n], int64(n)
	switch {
	case !peek:
		return nil
	case c.unsized(): // it has no parts
		c.close()
		return c.begin(false)
	}
	c.close()
	return nil
}

// unsized reports whether nobody knows how much there is to read, as in /proc.
func (c *content) unsized() bool { return c.info.Type != "-" || c.info.Size == 0 && len(c.start) > 0 }

// Read reads on. An error that it returned stays in c.err, as http.ServeContent does not report it.
func (c *content) Read(p []byte) (int, error) {
	if c.pos < int64(len(c.start)) {
		n := copy(p, c.start[c.pos:])
		c.pos += int64(n)
		return n, nil
	}
	if c.pos >= c.info.Size {
		return 0, io.EOF
	}
	if c.body == nil || c.at != c.pos {
		if c.err = c.reopen(); c.err != nil {
			return 0, c.err
		}
	}
	n, err := c.body.Read(p)
	c.at, c.pos = c.at+int64(n), c.pos+int64(n)
	switch {
	case errors.Is(err, io.EOF):
		if c.pos < c.end { // it shrank
			c.err = errChanged
		}
	case err != nil:
		c.err = err
	}
	return n, err
}

// reopen opens the file where the reader reads on.
func (c *content) reopen() error {
	c.close()
	info, body, err := c.open(c.pos, max(0, c.end-c.pos))
	if err != nil {
		return err
	}
	c.body, c.at = body, c.pos
	if tagOf(info) != tagOf(c.info) {
		return errChanged
	}
	return nil
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.pos
	case io.SeekEnd:
		offset += c.info.Size
	}
	c.pos = offset
	return offset, nil
}

// close closes what is open.
func (c *content) close() {
	if c.body != nil {
		_ = c.body.Close() // only read
		c.body = nil
	}
}

// tagOf changes whenever the file does: its time has nanoseconds.
func tagOf(info execution.FileInfo) string {
	return fmt.Sprintf(`"%x-%x"`, info.ModTime.UnixNano(), info.Size)
}

// errChanged cuts an answer short, visibly: its parts would be of two files.
var errChanged = errors.New("the file changed while it was sent")
