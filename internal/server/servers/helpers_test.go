package servers

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/peercall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPeerServer(s *Servers) *http.Server {
	return &http.Server{Handler: peercall.Identified(s.Mux()), ConnContext: peercall.ConnContext, ReadHeaderTimeout: time.Second}
}
