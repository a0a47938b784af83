package nomad_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	clustergroup "github.com/drover-project/drover/internal/httpapi/nomad/cluster"
)

// fakeArchives is the archive of a state that is a text.
type fakeArchives struct {
	text string
	fail error
	cut  bool // what is sent ends before it should

	restored, said string
}

func (f *fakeArchives) Save(_ context.Context, encrypt bool) (clustergroup.Archive, error) {
	sum := sha256.Sum256([]byte(f.text))
	sent := f.text
	if f.cut {
		sent = sent[:len(sent)/2]
	}
	return clustergroup.Archive{
		ReadCloser: io.NopCloser(strings.NewReader(sent)), Index: 12, Length: int64(len(f.text)),
		Digest: "sha-256=" + base64.StdEncoding.EncodeToString(sum[:]), Encrypted: encrypt,
	}, f.fail
}

func (f *fakeArchives) Restore(_ context.Context, in io.Reader, said string) (uint64, error) {
	if f.fail != nil {
		return 0, f.fail
	}
	text, err := io.ReadAll(in)
	f.restored, f.said = string(text), said
	return 13, err
}

// Nomad's own client takes an archive, checks its digest, and notices one that ends too early.
func TestSnapshotByNomadsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.archives.text = strings.Repeat("state ", 100_000)
	in, err := w.client.Operator().Snapshot(&api.QueryOptions{AllowStale: true})
	require.NoError(t, err)
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.Equal(t, w.archives.text, string(text))

	res, err := http.Get(w.url + "/v1/operator/snapshot")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "application/x-gzip", res.Header.Get("Content-Type"))
	require.Equal(t, "12", res.Header.Get("X-Nomad-Index"))
	require.Empty(t, res.Header.Get("X-Drover-Encrypted"))
	res, err = http.Get(w.url + "/v1/operator/snapshot?encrypt=true")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "true", res.Header.Get("X-Drover-Encrypted"))
	res, err = http.Get(w.url + "/v1/operator/snapshot?encrypt=perhaps")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusBadRequest, res.StatusCode)

	w.archives.cut = true
	in, err = w.client.Operator().Snapshot(nil)
	require.NoError(t, err)
	_, err = io.ReadAll(in)
	require.Error(t, err, "half an archive is none")
	require.NoError(t, in.Close())

	w.archives.fail = drover.Errorf(drover.Exhausted, "no space is left for the archive")
	_, err = w.client.Operator().Snapshot(nil)
	require.ErrorContains(t, err, "no space is left")
}

func TestRestoreByNomadsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := strings.Repeat("state ", 4<<20) // more than other bodies may have
	_, err := w.client.Operator().SnapshotRestore(strings.NewReader(text), nil)
	require.NoError(t, err)
	require.Equal(t, text, w.archives.restored)
	require.Empty(t, w.archives.said)
	w.archives.fail = drover.Errorf(drover.Invalid, "the archive is torn")
	_, err = w.client.Operator().SnapshotRestore(strings.NewReader(text), nil)
	require.ErrorContains(t, err, "the archive is torn")
}
