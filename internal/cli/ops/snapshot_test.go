package ops_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/cli/ops"
	"github.com/drover-project/drover/secrets"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha-256=" + base64.StdEncoding.EncodeToString(sum[:])
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	api := clitest.Serve(t, nil)
	said, query, got, encrypts := digest("the state"), "", "", false
	api.Handle("GET /v1/operator/snapshot", func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		w.Header().Set("Digest", said)
		w.Header().Set("X-Nomad-Index", "12")
		if encrypts {
			w.Header().Set("X-Drover-Encrypted", r.URL.Query().Get("encrypt"))
		}
		_, _ = io.WriteString(w, "the state")
	})
	api.Handle("PUT /v1/operator/snapshot", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = string(text) + " " + r.Header.Get("Digest")
		w.Header().Set("X-Nomad-Index", "13")
	})
	file, other := filepath.Join(dir, "a.snap"), filepath.Join(dir, "b.snap")
	api.Check(
		clitest.Case{Args: "operator snapshot save -stale " + file, Out: []string{"Saved the state of index 12 to " + file}},
		clitest.Case{Args: "operator snapshot save " + file, Code: 1, Err: []string{"is there already"}},
		clitest.Case{Args: "operator snapshot save -interval 1h " + other, Code: 2, Err: []string{"-folder instead of FILE"}},
		clitest.Case{Args: "operator snapshot save -keep 0", Code: 2, Err: []string{"-keep at least 1"}},
		clitest.Case{Args: "operator snapshot save " + filepath.Join(dir, "no", "folder"), Code: 2, Err: []string{"no such file"}},
		clitest.Case{Args: "operator snapshot restore " + file, Out: []string{"restored, as index 13"}},
		clitest.Case{Args: "operator snapshot restore " + other, Code: 2, Err: []string{other}},
	)
	require.Equal(t, "stale=", query)
	require.Equal(t, "the state "+digest("the state"), got)
	sealed := filepath.Join(dir, "sealed.snap")
	api.Check(clitest.Case{Args: "operator snapshot save -encrypt " + sealed, Code: 1, Err: []string{"the server does not encrypt"}})
	require.NoFileExists(t, sealed)
	encrypts = true
	api.Check(clitest.Case{Args: "operator snapshot save -encrypt " + sealed, Out: []string{"Saved the state"}})
	require.Equal(t, "encrypt=true", query)
	said = digest("another state")
	api.Check(clitest.Case{Args: "operator snapshot save " + other, Code: 1, Err: []string{"damaged on its way"}})
	require.NoFileExists(t, other)

	api.Parts.Archives = ops.Archives{
		Inspect: func(r io.Reader) (cluster.ArchiveContent, error) {
			text, err := io.ReadAll(r)
			if string(text) != "the state" {
				return cluster.ArchiveContent{}, drover.Errorf(drover.Invalid, "the archive is torn")
			}
			if encrypts {
				return cluster.ArchiveContent{Archive: cluster.Archive{Index: 12, Key: []secrets.Wrapped{{Provider: "aead", KeyID: "k"}}}}, err
			}
			return cluster.ArchiveContent{
				Archive: cluster.Archive{ID: "2-12-1", Index: 12, Program: "v1", Size: 9},
				Tables:  []cluster.ArchiveTable{{Name: "jobs", Records: 3, Bytes: 2048}},
			}, err
		},
		State: func(_ context.Context, r io.Reader, w io.Writer) error { _, err := io.Copy(w, r); return err },
	}
	api.Check(clitest.Case{
		Args: "operator snapshot inspect " + file, Out: []string{"Encrypted = key k of keyring aead"}, Not: []string{"There is none"},
	})
	encrypts = false
	torn := filepath.Join(dir, "torn.snap")
	require.NoError(t, os.WriteFile(torn, []byte("the"), 0o600))
	api.Check(
		clitest.Case{Args: "operator snapshot inspect " + file, Out: []string{"Index = 12", "jobs 3 2.0 KiB"}},
		clitest.Case{Args: "operator snapshot inspect -json " + file, Out: []string{`"Records": 3`}},
		clitest.Case{Args: "operator snapshot inspect " + torn, Code: 2, Err: []string{"the archive is torn"}},
		clitest.Case{Args: "operator snapshot state " + file, Out: []string{"the state"}},
	)
}

func TestWhatANodeRemembersIsPrinted(t *testing.T) {
	t.Parallel()
	api, dir := clitest.Serve(t, nil), t.TempDir()
	api.Check(clitest.Case{Args: "operator client-state " + dir, Code: 1, Err: []string{"nodes run on Linux only"}})
	api.Parts.Archives.Node = func(path string, w io.Writer) error {
		if strings.HasSuffix(path, "torn") {
			return errors.New("it is torn")
		}
		_, err := io.WriteString(w, path)
		return err
	}
	api.Check(clitest.Case{Args: "operator client-state " + dir, Code: 2, Err: []string{"there is no client/state.db in " + dir}})
	file := filepath.Join(dir, "client", "state.db")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	torn := filepath.Join(dir, "torn")
	require.NoError(t, os.WriteFile(torn, nil, 0o600))
	api.Check(
		clitest.Case{Args: "operator client-state " + dir, Out: []string{file}},
		clitest.Case{Args: "operator client-state " + filepath.Dir(file), Out: []string{file}},
		clitest.Case{Args: "operator client-state " + torn, Code: 2, Err: []string{"it is torn"}},
	)
}
