package vars_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// TestALostLockEndsTheCommand: renewals go on while they succeed, and after the first refusal the command is ended. A server that is away
// for a moment loses nothing.
func TestALostLockEndsTheCommand(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, nil)
	var renewed, released atomic.Int32
	api.Handle("PUT /v1/var/l/x", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("lock-renew") {
			switch n := renewed.Add(1); {
			case n == 2:
				w.WriteHeader(http.StatusInternalServerError)
				return
			case n >= 4:
				w.WriteHeader(http.StatusConflict)
				fmt.Fprint(w, `{"Path": "l/x", "ModifyIndex": 9}`)
				return
			}
		}
		if r.URL.Query().Has("lock-release") {
			released.Add(1)
		}
		fmt.Fprint(w, `{"Path": "l/x", "Lock": {"ID": "l1", "TTL": "1s"}}`)
	})
	got := api.Run("var", "lock", "-ttl", "1s", "l/x", "echo begun; exec sleep 60")
	require.Equal(t, int32(4), renewed.Load())
	require.NotZero(t, got.Code)
	require.Equal(t, "begun\n", got.Out)
	require.Contains(t, got.Err, "the lock was lost: the command was ended")
	require.Equal(t, int32(1), released.Load())
}
