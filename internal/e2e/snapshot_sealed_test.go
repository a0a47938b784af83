package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnEncryptedArchiveGoesWhereItsKeyIs: with server.snapshots.encrypt nobody gets an archive in clear text, and nothing of a token or
// a job is in it. Another cluster refuses it with the id of the key until it is given the key-encryption key. Then it has everything,
// variables too.
func TestAnEncryptedArchiveGoesWhereItsKeyIs(t *testing.T) {
	t.Parallel()
	const access = "acl {\n  enabled = true\n}\n"
	oldDir, newDir := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")
	old := start(t, append([]string{"-server"},
		config(t, oldDir, access+"server {\n  enabled = true\n  snapshots {\n    encrypt = true\n  }\n}\n")...)...)
	root, _, err := old.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	old.token = root.SecretID
	variable(t, old.nomad(), "app/db", map[string]string{"password": "hunter2-of-the-variable"})
	job := serversJob("named-in-the-state")
	job.Meta = map[string]string{"what": "text-of-the-job"}
	_, _, err = old.nomad().Jobs().Register(job, nil)
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "a.snap")
	old.drover("", "operator", "snapshot", "save", file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	zip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	text, err := io.ReadAll(zip)
	require.NoError(t, err)
	for _, secret := range []string{root.SecretID, root.AccessorID, "hunter2-of-the-variable", "text-of-the-job", "named-in-the-state"} {
		require.NotContains(t, string(text), secret)
	}
	require.Contains(t, old.drover("", "operator", "snapshot", "inspect", file), "of keyring aead")

	lone := start(t, append([]string{"-server"}, config(t, newDir, access+"server {\n  enabled = true\n}\n")...)...)
	first, _, err := lone.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	lone.token = first.SecretID
	_, err = lone.nomad().Operator().SnapshotRestore(bytes.NewReader(data), nil)
	require.ErrorContains(t, err, "503")
	require.ErrorContains(t, err, "the archive is encrypted with key ")
	keys, err := filepath.Glob(filepath.Join(oldDir, "server/keyring/*.key"))
	require.NoError(t, err)
	require.Len(t, keys, 1)
	key, err := os.ReadFile(keys[0])
	require.NoError(t, err)
	folder := filepath.Join(newDir, "server/keyring") // which the server makes with its first root key, perhaps later
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(keys[0])), key, 0o600))
	_, err = lone.nomad().Operator().SnapshotRestore(bytes.NewReader(data), nil)
	require.NoError(t, err)
	lone.token = root.SecretID
	require.Contains(t, lone.drover("", "var", "get", "app/db"), "hunter2-of-the-variable")
	require.Contains(t, jobIDs(t, lone.nomad(), false), "named-in-the-state")
}
