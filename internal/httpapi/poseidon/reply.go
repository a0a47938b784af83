package poseidon

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// Error codes of the contract.
const (
	codeOverload  = "NOMAD_OVERLOAD"
	codeInternal  = "NOMAD_INTERNAL_SERVER_ERROR"
	codeDepleting = "PREWARMING_POOL_DEPLETING"
	codeUnknown   = "UNKNOWN"
)

// Texts of the contract.
const (
	textNoEnvironment = "nomad wrapped: execution environment not found"
	textNoRunner      = "abstract manager wrapped: no runner found with this id"
	textOverload      = "no runners available for this execution environment"
	textNoExecution   = "execution id unknown"
	textNoFile        = "file not found or insufficient permissions"
)

// reply is an error whose answer is known. Client errors have no code, an empty message is an empty body.
type reply struct {
	status  int
	message string
	code    string
}

// Error is the answer's message, which may be empty.
func (r *reply) Error() string { return r.message }

// Unwrap tells httpapi the status, for its log.
func (r *reply) Unwrap() error {
	return &httpapi.StatusError{Status: r.status, Err: errors.New(r.message)}
}

// body has its keys in the contract's order.
type body struct {
	Message   string `json:"message"`
	ErrorCode string `json:"errorCode,omitempty"`
}

// maxDrain bounds what is read of a refused request's body. Reading it keeps clients from seeing a reset connection
// instead of the answer.
const maxDrain = 64 << 20

// WriteError serves httpapi.Face.
func (f *Face) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Body != nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // what cannot be read does not matter
	}
	answer := replyTo(err)
	if answer.message == "" {
		w.WriteHeader(answer.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.status)
	text, _ := json.Marshal(body{answer.message, answer.code}) // strings only
	_, _ = w.Write(text)                                       // fails only when the client is gone
}

// replyTo maps an error to the contract's answers. An empty pool is its overload, and a server that cannot work now
// is Nomad's fault, both with 500: CodeOcean decides by the code. A refused token has an empty body.
func replyTo(err error) *reply {
	if known, ok := errors.AsType[*reply](err); ok {
		return known
	}
	status := httpapi.Status(err)
	switch drover.CodeOf(err) {
	case drover.Unauthorized, drover.Forbidden:
		return &reply{status: http.StatusUnauthorized}
	case drover.Exhausted:
		return &reply{http.StatusInternalServerError, textOverload, codeOverload}
	case drover.Unavailable, drover.NotLeader, drover.Canceled:
		return &reply{http.StatusInternalServerError, err.Error(), codeInternal}
	}
	if status >= 500 {
		return &reply{http.StatusInternalServerError, err.Error(), codeUnknown}
	}
	return &reply{status: status, message: err.Error()}
}

// runnerError is for routes below a runner: one that is not, or no longer, there is 410.
func runnerError(err error) error {
	switch drover.CodeOf(err) {
	case drover.Gone, drover.NotFound:
		return &reply{status: http.StatusGone, message: textNoRunner}
	}
	return err
}

// decode reads a JSON body as Poseidon does: unknown fields are ignored, and the decoder's own words are the message.
func decode(r *http.Request, into any) error {
	err := json.NewDecoder(r.Body).Decode(into)
	if err == nil {
		return nil
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return drover.Errorf(drover.TooLarge, "the body is larger than %d bytes", large.Limit)
	}
	return &reply{status: http.StatusBadRequest, message: err.Error()}
}

// writeJSON answers 200 with v as compact JSON. The contract has no parameter "pretty", which httpapi.WriteJSON obeys.
func writeJSON(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // fails only when the client is gone
	return nil
}
