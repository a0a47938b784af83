package link

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
)

const procEnroll = controlPath + "Enroll"

type enrollRequest struct {
	Identity Identity
	CSR      []byte // PEM
}

type enrollReply struct{ Certificate []byte } // PEM

// EnrollPath is where machines without a certificate ask for one: all that they may do.
const EnrollPath = procEnroll

// EnrollHandler serves EnrollPath. certify checks who asks and returns a certificate for the key that signed the
// request, both in PEM. Errors: certify's.
func EnrollHandler(certify func(ctx context.Context, who Identity, csr []byte) ([]byte, error)) http.Handler {
	mux := http.NewServeMux()
	unary(mux, procEnroll, handlerOptions, func(ctx context.Context, _ http.Header, r *enrollRequest) (*enrollReply, error) {
		cert, err := certify(ctx, r.Identity, r.CSR)
		return &enrollReply{cert}, err
	})
	return mux
}

// Enroll asks the server at base for a certificate. Errors: Unauthorized, Invalid, Unavailable.
func Enroll(ctx context.Context, hc *http.Client, base string, who Identity, csr []byte) ([]byte, error) {
	client := connect.NewClient[enrollRequest, enrollReply](hc, base+procEnroll, clientOptions)
	reply, err := call(ctx, client, Identity{}, &enrollRequest{who, csr})
	return reply.Certificate, err
}

// TokenOf is the join token that a request of a node carries.
func TokenOf(h http.Header) string { return h.Get(tokenHeader) }
