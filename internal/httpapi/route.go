package httpapi

import "net/http"

// Handle answers a request. An error that it returns is written by its face's WriteError. If the response has already
// begun the connection is cut instead, so that a client never takes half an answer for a whole one.
type Handle func(w http.ResponseWriter, r *http.Request) error

// Route is one entry of a face's table of contents.
type Route struct {
	// Pattern is a net/http.ServeMux path with methods before it: "GET /v1/jobs", "PUT,POST /v1/job/{rest...}".
	// Without methods it answers all of them. A known path with another method gets 405 from WriteError.
	Pattern string
	Handle  Handle
	// Where says which agent answers: required.
	Where Where
	// Need says what right the request needs: required. A route without one lets management through alone.
	Need Need
	// Raw is used instead of Handle by what needs the bare http.Handler (pprof, file servers).
	Raw http.HandlerFunc
	// MaxBody bounds the request body in bytes; 0 means Config.MaxBody, -1 unbounded (uploads that are streamed).
	MaxBody int64
	// Stream marks an answer without an end (websocket, logs, events): it is not compressed, counts against
	// Config.MaxStreams, and its write deadline is its own matter.
	Stream bool
}

// Face is a dialect.
type Face interface {
	Routes() []Route
	// WriteError writes err in the dialect's body shape. Status(err) and Message(err) have the shared mapping.
	WriteError(w http.ResponseWriter, r *http.Request, err error)
}

// TokenFace is a Face whose clients carry their token elsewhere than in X-Nomad-Token, X-Drover-Token or
// "Authorization: Bearer".
type TokenFace interface {
	Face
	Token(r *http.Request) string
}
