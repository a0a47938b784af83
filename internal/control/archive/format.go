package archive

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
)

// formatVersion is that of archives in clear text.
const formatVersion = 1

// The files of an archive, in their order.
const (
	fileMeta  = "meta.json"
	fileState = "state.bin"
	fileSums  = "SHA256SUMS"
)

// formatOf is the format that an archive must have.
func formatOf(m cluster.Archive) int {
	if len(m.Key) > 0 {
		return sealedVersion
	}
	return formatVersion
}

// maxSmall bounds the files beside the state.
const maxSmall = 64 << 10

// Image is the state at one index; *snapshot.Image implements it. Each call of Write writes the same bytes.
type Image interface {
	Index() uint64
	Cluster() *cluster.State // nil: of a server that was always alone
	Write(w io.Writer) error
}

// Write writes an archive of the image, whose Version, Index and Size it fills in; encrypted if there is a key, which m.Key has wrapped.
// The image is written twice: a tar says how long a file is before the file.
func Write(w io.Writer, m cluster.Archive, image Image, key []byte) (err error) {
	write := image.Write
	m.Version = formatVersion
	if key != nil {
		m.Version = sealedVersion
		if write, err = sealed(image, key, m.ID); err != nil {
			return err
		}
	}
	measured := &measure{hash: sha256.New()}
	if err := write(measured); err != nil {
		return err
	}
	m.Index, m.Size = image.Index(), measured.size
	about, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	about = append(about, '\n')
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(zip)
	state := hex.EncodeToString(measured.hash.Sum(nil))
	sums := fmt.Sprintf("%x  %s\n%s  %s\n", sha256.Sum256(about), fileMeta, state, fileState)
	steps := []struct {
		name  string
		size  int64
		write func(io.Writer) error
	}{
		{fileMeta, int64(len(about)), text(about)},
		{fileState, measured.size, write},
		{fileSums, int64(len(sums)), text([]byte(sums))},
	}
	for _, s := range steps {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: s.name, Size: s.size, Mode: 0o600, ModTime: m.Created.Truncate(time.Second)}
		if err := out.WriteHeader(head); err != nil {
			return err
		}
		if err := s.write(out); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

func text(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// measure counts and hashes what is written to it.
type measure struct {
	hash hash.Hash
	size int64
}

// Write implements io.Writer.
func (m *measure) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	return m.hash.Write(p)
}

// Read reads an archive to its end and hands its state, as it is in the file, to the function, which need not read all of it. Only once
// Read has returned without an error is the archive known to be whole: what the function made of it must not count before.
// Errors: Invalid with what is wrong, and those of the function.
func Read(r io.Reader, state func(cluster.Archive, io.Reader) error) (cluster.Archive, error) {
	a := &reader{in: bufio.NewReaderSize(r, 64<<10), sums: map[string]string{}}
	m, err := a.read(state)
	if err != nil {
		return cluster.Archive{}, err
	}
	return m, nil
}

// reader reads one archive.
type reader struct {
	in   *bufio.Reader
	tar  *tar.Reader
	sums map[string]string // of the files that were read
}

func (a *reader) read(state func(cluster.Archive, io.Reader) error) (m cluster.Archive, err error) {
	zip, err := gzip.NewReader(a.in)
	if err != nil {
		return m, broken(err)
	}
	zip.Multistream(false) // so that nothing can stand behind the archive
	a.tar = tar.NewReader(zip)
	about, err := a.small(fileMeta)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(about, &m); err != nil {
		return m, drover.Errorf(drover.Invalid, "the archive's %s cannot be read: %w", fileMeta, err)
	}
	if m.Program == "" {
		return m, drover.Errorf(drover.Invalid, "this is an archive of another program, not of drover")
	}
	if want := formatOf(m); m.Version != want {
		return m, drover.Errorf(drover.Invalid, "the archive has format %d, this program reads %d", m.Version, want)
	}
	if err := a.state(m, state); err != nil {
		return m, err
	}
	sums, err := a.small(fileSums)
	if err != nil {
		return m, err
	}
	if err := a.compare(string(sums)); err != nil {
		return m, err
	}
	return m, a.end(zip)
}

// next finds the next file, which must have the name.
func (a *reader) next(name string) (*tar.Header, error) {
	h, err := a.tar.Next()
	if err != nil {
		return nil, broken(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return nil, drover.Errorf(drover.Invalid, "the archive has %q where %s must be", h.Name, name)
	}
	return h, nil
}

// small reads a file beside the state.
func (a *reader) small(name string) ([]byte, error) {
	h, err := a.next(name)
	if err != nil {
		return nil, err
	}
	if h.Size > maxSmall {
		return nil, drover.Errorf(drover.Invalid, "the archive's %s has %d bytes", name, h.Size)
	}
	data, err := io.ReadAll(a.tar)
	if err != nil {
		return nil, broken(err)
	}
	a.sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
	return data, nil
}

// state hands the state on, and hashes it. The sender's errors are told as those of the archive, the function's as they are.
func (a *reader) state(m cluster.Archive, then func(cluster.Archive, io.Reader) error) error {
	h, err := a.next(fileState)
	if err != nil {
		return err
	}
	if h.Size != m.Size {
		return drover.Errorf(drover.Invalid, "the archive's %s has %d bytes, its %s says %d", fileState, h.Size, fileMeta, m.Size)
	}
	sum := sha256.New()
	in := io.TeeReader(&faulty{a.tar}, sum)
	if err := then(m, in); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // what the function did not read is hashed, too
		return err
	}
	a.sums[fileState] = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// faulty says of a file that ends early, or that cannot be unpacked, that the archive is broken.
type faulty struct{ io.Reader }

// Read implements io.Reader.
func (f *faulty) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = broken(err)
	}
	return n, err
}

// compare checks the sums that the archive has against those of what was read.
func (a *reader) compare(sums string) error {
	listed := map[string]string{}
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		listed[name] = sum
	}
	for _, name := range []string{fileMeta, fileState} {
		if listed[name] != a.sums[name] {
			return drover.Errorf(drover.Invalid, "the archive is damaged: %s has another checksum than %s says", name, fileSums)
		}
	}
	return nil
}

// end checks that nothing follows, and with that gzip's own checksum.
func (a *reader) end(zip io.Reader) error {
	switch h, err := a.tar.Next(); {
	case err == nil:
		return drover.Errorf(drover.Invalid, "the archive has %q behind its end", h.Name)
	case !errors.Is(err, io.EOF):
		return broken(err)
	}
	if _, err := io.Copy(io.Discard, zip); err != nil {
		return broken(err)
	}
	if _, err := a.in.ReadByte(); !errors.Is(err, io.EOF) {
		return drover.Errorf(drover.Invalid, "the archive has something behind its end")
	}
	return nil
}

// broken is the error of what cannot be unpacked; an error with a code of its own stays what it is.
func broken(err error) error {
	switch {
	case drover.CodeOf(err) != drover.Internal:
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return drover.Errorf(drover.Invalid, "the archive is torn: it ends too early")
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, tar.ErrHeader):
		return drover.Errorf(drover.Invalid, "this is no archive, or it is damaged: %w", err)
	}
	return drover.Errorf(drover.Invalid, "the archive cannot be unpacked: %w", err)
}
