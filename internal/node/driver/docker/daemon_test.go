package docker

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// impatient is a clock by which an answer's time is over once the daemon was seen to hang.
type impatient struct {
	clock.Wall
	hangs chan struct{}
}

func (i impatient) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with ctx
		select {
		case <-i.hangs:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// TestADaemonThatIsBusyIsNotAway: dockerd's /info waits for as long as it looks up the name of some job's registry.
func TestADaemonThatIsBusyIsNotAway(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	var busy, away atomic.Bool
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		switch {
		case filepath.Base(r.URL.Path) == "_ping" && away.Load():
			w.WriteHeader(http.StatusInternalServerError)
		case filepath.Base(r.URL.Path) == "info" && busy.Load():
			select {
			case hangs <- struct{}{}:
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		case filepath.Base(r.URL.Path) == "info":
			_, _ = w.Write([]byte(`{"OSType": "linux", "ServerVersion": "1", "DefaultRuntime": "runc"}`))
		}
	}))
	socket := filepath.Join(t.TempDir(), "s")
	var err error
	service.Listener, err = net.Listen("unix", socket)
	require.NoError(t, err)
	service.Start()
	t.Cleanup(service.Close)
	open := func() *Driver {
		d, err := New(Config{Endpoint: "unix://" + socket, Binary: "/proc/self/exe", Clock: impatient{hangs: hangs}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		return d
	}
	d := open()
	_, err = d.daemon.ask(t.Context())
	require.NoError(t, err)
	busy.Store(true)
	said, err := d.daemon.ask(t.Context())
	require.NoError(t, err, "it is there, and says nothing just now")
	require.Equal(t, "1", said.ServerVersion)
	_, err = open().daemon.ask(t.Context())
	require.ErrorIs(t, err, context.Canceled, "it never said anything")
	away.Store(true)
	_, err = d.daemon.ask(t.Context())
	require.ErrorIs(t, err, context.Canceled, "it is not even there")
}
