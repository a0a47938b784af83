package archive

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/version"
)

// Deps are what archives are made of and restored to.
type Deps struct {
	// Image returns the present state.
	Image  func() Image
	Log    Log
	Clock  clock.Clock
	IDs    id.Source
	Logger *slog.Logger
	Region string
	// Folder is where what is sent and received is kept meanwhile; "" = the system's for temporary files.
	Folder string
	// Keys encrypts archives, all that are written if Encrypt is set, and opens those that are restored.
	Keys    Keys
	Encrypt bool
}

// Log is the replicated log; *raftlog.Log implements it.
type Log interface {
	// Term is the present term of office.
	Term() uint64
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
	// Hold ends what decides by the state while this server leads, and lets it begin again when release is called.
	Hold(ctx context.Context) (release func(), err error)
	// Snapshot lets the log drop what is behind it.
	Snapshot() error
}

// Archives saves the state of one server, and has that of all replaced.
type Archives struct {
	deps      Deps
	restoring sync.Mutex
}

// New returns the archives of a server. What an earlier process left in the folder is removed.
func New(deps Deps) *Archives {
	a := &Archives{deps: deps}
	if deps.Folder != "" {
		left, _ := filepath.Glob(filepath.Join(deps.Folder, spoolPattern)) // the pattern is right
		for _, name := range left {
			_ = os.Remove(name) // it takes space, and does no other harm
		}
	}
	return a
}

// spoolPattern is how files are called that are sent or received.
const spoolPattern = "archive-*.tmp"

// Write writes an archive of the present state, encrypted where that is asked for or is the rule. Errors: those of w; Unavailable if it
// cannot be encrypted.
func (a *Archives) Write(ctx context.Context, w io.Writer, encrypt bool) (m cluster.Archive, err error) {
	image := a.deps.Image()
	m = cluster.Archive{
		Term: a.deps.Log.Term(), Created: a.deps.Clock.Now().UTC(), Region: a.deps.Region, Program: version.Version,
	}
	if c := image.Cluster(); c != nil {
		m.Cluster, m.Epoch = c.ID, c.Epoch
	}
	m.ID = fmt.Sprintf("%d-%d-%d", m.Term, image.Index(), m.Created.UnixMilli())
	m.Index = image.Index()
	var key []byte
	if encrypt || a.deps.Encrypt {
		key = make([]byte, sealKeySize)
		_, _ = rand.Read(key) // it never fails
		if m.Key, err = a.deps.Keys.WrapKey(ctx, key); err != nil {
			return m, fmt.Errorf("encrypting the archive: %w", err)
		}
	}
	return m, Write(w, m, image, key)
}

// Saved is an archive that is ready to be sent. It is to be closed.
type Saved struct {
	cluster.Archive
	Digest string // as the header has it
	Length int64
	file   *os.File
}

// Read implements io.Reader.
func (s *Saved) Read(p []byte) (int, error) { return s.file.Read(p) }

// Close forgets the archive.
func (s *Saved) Close() error { return s.file.Close() }

// Save makes an archive of the present state, as Write does. It is kept in a file without a name until it is closed: who receives it has to
// know its digest first. Errors: Exhausted if the disk is full; those of Write.
func (a *Archives) Save(ctx context.Context, encrypt bool) (*Saved, error) {
	s := &Saved{}
	f, err := a.spool(func(w io.Writer, sum hash.Hash) (err error) {
		s.Archive, err = a.Write(ctx, w, encrypt)
		s.Digest = digest(sum.Sum(nil))
		return err
	})
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.file, s.Length = f, info.Size()
	return s, nil
}

// spool returns a file with what write wrote, at its beginning. Only this user can read it, and it goes with its last use. sum is
// the digest of what was written so far.
func (a *Archives) spool(write func(w io.Writer, sum hash.Hash) error) (*os.File, error) {
	f, err := os.CreateTemp(a.deps.Folder, spoolPattern)
	if err != nil {
		return nil, diskError(err)
	}
	sum := sha256.New()
	err = os.Remove(f.Name())
	if err == nil {
		err = write(io.MultiWriter(f, sum), sum)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(diskError(err), f.Close())
	}
	return f, nil
}

// digest is a sum as the header Digest has it.
func digest(sum []byte) string { return digestName + base64.StdEncoding.EncodeToString(sum) }

// digestName is before the sum.
const digestName = "sha-256="

// CheckDigest checks what a sender said of an archive in the header Digest; "" says nothing. Errors: Invalid.
func CheckDigest(said string, sum []byte) error {
	if said == "" || said == digest(sum) {
		return nil
	}
	if !strings.HasPrefix(said, digestName) {
		return drover.Errorf(drover.Invalid, "the header Digest is of another kind than %s", digestName)
	}
	return drover.Errorf(drover.Invalid, "the archive has another sum than its header Digest says: it was damaged on its way")
}

// diskError gives the errors of files their codes.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return drover.Errorf(drover.Exhausted, "no space is left for the archive: %w", err)
	}
	return err
}
