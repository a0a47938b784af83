package link

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
)

const procEnroll = controlPath + "Enroll"

type enrollRequest struct {
	Identity     Identity
	CSR          []byte // PEM
	Introduction string
}

type enrollReply struct{ Certificate []byte } // PEM

// EnrollPath is where machines without a certificate ask for one: all that they may do.
const EnrollPath = procEnroll

// mostEnroll is how many bytes a request for a certificate has at most: strangers send them.
const mostEnroll = 64 << 10

// Applicant is who asks for a certificate. Its secret counts once the node has registered.
type Applicant = Caller

// EnrollHandler serves EnrollPath. certify checks who asks and returns a certificate for the key that signed the
// request, both in PEM. Errors: certify's.
func EnrollHandler(certify func(ctx context.Context, who Applicant, csr []byte) ([]byte, error)) http.Handler {
	mux := http.NewServeMux()
	opts := connect.WithHandlerOptions(wire.HandlerOptions, connect.WithReadMaxBytes(mostEnroll))
	wire.Unary(mux, procEnroll, opts, func(ctx context.Context, _ http.Header, r *enrollRequest) (*enrollReply, error) {
		who := Applicant{r.Identity.NodeID, r.Identity.Secret, exchange.Tokens{Join: r.Identity.JoinToken, Introduction: r.Introduction}}
		cert, err := certify(ctx, who, r.CSR)
		return &enrollReply{cert}, err
	})
	return mux
}

// Enroll asks the server at base for a certificate. Errors: Unauthorized, Invalid, Unavailable.
func Enroll(ctx context.Context, hc *http.Client, base string, who Applicant, csr []byte) ([]byte, error) {
	client := connect.NewClient[enrollRequest, enrollReply](hc, base+procEnroll, wire.ClientOptions)
	is := Identity{NodeID: who.NodeID, Secret: who.Secret, JoinToken: who.Tokens.Join}
	shown := is // so that it is no stranger before it is read what it asks for
	shown.introduction = who.Tokens.Introduction
	reply, err := call(ctx, client, shown, &enrollRequest{is, csr, who.Tokens.Introduction})
	return reply.Certificate, err
}
