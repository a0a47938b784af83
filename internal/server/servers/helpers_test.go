package servers

import (
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/peercall"
)

// TestMain: memberlist's Shutdown does not wait for a probe of a member that does not answer, which ends by its own time limit.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

func newPeerServer(s *Servers) *http.Server {
	return &http.Server{Handler: peercall.Identified(s.Mux()), ConnContext: peercall.ConnContext, ReadHeaderTimeout: time.Minute}
}
