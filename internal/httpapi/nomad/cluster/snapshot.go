package cluster

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// Archives saves the state, and has it replaced.
type Archives interface {
	// Save makes an archive of this server's state, encrypted if that is asked for or is the rule. Errors: Exhausted if the disk is full;
	// Unavailable if it cannot be encrypted.
	Save(ctx context.Context, encrypt bool) (Archive, error)
	// Restore replaces the state of all servers by an archive's, if that is whole and has the digest; "" = its sender says none.
	// It returns the index of the new state. Errors: Invalid, with what is wrong; NotLeader, Unavailable, Conflict, Exhausted.
	Restore(ctx context.Context, archive io.Reader, digest string) (index uint64, err error)
}

// Archive is to be read to its end, and closed.
type Archive struct {
	io.ReadCloser
	Index  uint64
	Length int64
	Digest string // "sha-256=" and the sum in base64
	// Encrypted says that only who has a key-encryption key of these servers can read it.
	Encrypted bool
}

// saveSnapshot answers GET /v1/operator/snapshot.
func (f *face) saveSnapshot(w http.ResponseWriter, r *http.Request) error {
	if _, err := f.ParseQuery(r); err != nil {
		return err
	}
	encrypt, err := httpapi.BoolParam(r, "encrypt", false)
	if err != nil {
		return err
	}
	a, err := f.Archives.Save(r.Context(), encrypt)
	if err != nil {
		return err
	}
	defer a.Close()
	h := w.Header()
	h.Set("Digest", a.Digest)
	h.Set("Content-Length", strconv.FormatInt(a.Length, 10))
	if a.Encrypted {
		h.Set("X-Drover-Encrypted", "true")
	}
	f.SetIndex(w, a.Index)
	_, err = io.Copy(writer(f.OpenStream(w, "application/x-gzip").Bytes), a)
	return err
}

// writer makes a function a writer.
type writer func(p []byte) error

// Write implements io.Writer.
func (f writer) Write(p []byte) (int, error) {
	if err := f(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// uploadStall is how long an archive that is sent may pause.
const uploadStall = time.Minute

// restoreSnapshot answers PUT /v1/operator/snapshot.
func (f *face) restoreSnapshot(w http.ResponseWriter, r *http.Request) error {
	if _, err := f.ParseQuery(r); err != nil {
		return err
	}
	index, err := f.Archives.Restore(r.Context(), httpapi.Upload(w, r, f.Clock, uploadStall), r.Header.Get("Digest"))
	if err != nil {
		return err
	}
	return f.Written(w, r, drover.Outcome{Index: index}, struct{ Index uint64 }{index})
}
