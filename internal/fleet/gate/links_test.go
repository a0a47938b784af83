package gate

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link"
)

// Who has no certificate may ask for one and reaches nothing else; a machine with one passes.
func TestTheHandlerLetsThroughWhoMayPass(t *testing.T) {
	t.Parallel()
	w, g, chains := machineWithCertificate(t)
	unopened := newWorld()
	unopened.identity = nil
	for name, c := range map[string]struct {
		gate *Gate
		conn *tls.ConnectionState
		want int
	}{
		"nobody":    {g, nil, http.StatusUnauthorized},
		"a machine": {g, &tls.ConnectionState{VerifiedChains: chains}, http.StatusTeapot},
		"before there is a key": {
			unopened.with(Config{Certified: true}), &tls.ConnectionState{VerifiedChains: chains},
			http.StatusServiceUnavailable,
		},
	} {
		passed := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) })
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/anything", nil)
		q.TLS = c.conn
		q.Header.Set("Drover-Join-Token", w.token("i1"))
		reply := httptest.NewRecorder()
		Handler(c.gate, current, passed).ServeHTTP(reply, q)
		require.Equal(t, c.want, reply.Code, name)
	}
}

// The one path that is open without a certificate gives one for a machine's token, and to nobody else.
func TestTheHandlerCertifies(t *testing.T) {
	t.Parallel()
	w := newWorld()
	srv := httptest.NewServer(Handler(w.with(Config{Certified: true}), current, http.NotFoundHandler()))
	defer srv.Close()
	_, csr := request(t, "")
	text, err := link.Enroll(t.Context(), srv.Client(), srv.URL, applicant("n", "s", w.token("i1")), csr)
	require.NoError(t, err)
	require.Equal(t, "i1", leafOf(t, text).Subject.CommonName)
	require.Equal(t, "n", w.instances["i1"].NodeID, "the token is this node's from now on")
	_, err = link.Enroll(t.Context(), srv.Client(), srv.URL, applicant("n", "", "guessed"), csr)
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
}

// applicant is a node that asks for a certificate.
func applicant(node, secret, token string) link.Applicant {
	return link.Applicant{NodeID: node, Secret: secret, Tokens: exchange.Tokens{Join: token}}
}

// current is of a server that is alone.
func current(context.Context) error { return nil }

// late is a registrar of a server that has not heard yet of what another one bought.
type late struct {
	Registrar
	knows bool
}

func (l *late) Certify(context.Context, link.Applicant, []byte) ([]byte, error) {
	if !l.knows {
		return nil, errGone()
	}
	return []byte("certificate"), nil
}

// A machine powers itself off when it is refused: a server refuses it only on state as new as the leader's, and else says that it
// cannot know.
func TestNoMachineIsRefusedOnOldState(t *testing.T) {
	t.Parallel()
	ask := func(l *late, current func(context.Context) error) ([]byte, error) {
		srv := httptest.NewUnstartedServer(Handler(l, current, http.NotFoundHandler()))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		defer srv.Close()
		return link.Enroll(t.Context(), srv.Client(), srv.URL, applicant("n", "", ""), nil)
	}
	l := &late{}
	cert, err := ask(l, func(context.Context) error { l.knows = true; return nil })
	require.NoError(t, err)
	require.Equal(t, "certificate", string(cert))
	_, err = ask(&late{}, current)
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err), "%v", err)
	_, err = ask(&late{}, func(context.Context) error { return drover.Errorf(drover.Unavailable, "no leader") })
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
}
