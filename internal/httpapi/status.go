package httpapi

import (
	"errors"
	"net/http"

	"github.com/drover-project/drover"
)

// StatusError is an error with a status of its own, for the few that no drover.Code stands for (405).
type StatusError struct {
	Status int
	Err    error
}

// Error returns the reason.
func (e *StatusError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StatusError) Unwrap() error { return e.Err }

// statuses maps the closed set of codes; this is the only place that does.
var statuses = map[drover.Code]int{
	drover.Internal:       http.StatusInternalServerError,
	drover.Invalid:        http.StatusBadRequest,
	drover.NotFound:       http.StatusNotFound,
	drover.Gone:           http.StatusGone,
	drover.Conflict:       http.StatusConflict,
	drover.NotLeader:      http.StatusServiceUnavailable,
	drover.Unauthorized:   http.StatusUnauthorized,
	drover.Forbidden:      http.StatusForbidden,
	drover.Unavailable:    http.StatusServiceUnavailable,
	drover.Exhausted:      http.StatusServiceUnavailable,
	drover.RateLimited:    http.StatusTooManyRequests,
	drover.Canceled:       499, // the client went away; nobody reads it, the access log does
	drover.TooLarge:       http.StatusRequestEntityTooLarge,
	drover.NotImplemented: http.StatusNotImplemented,
}

// Status returns the HTTP status for err: a StatusError's own, else by drover.CodeOf; never below 400.
func Status(err error) int {
	if s, ok := errors.AsType[*StatusError](err); ok {
		return s.Status
	}
	if s, ok := statuses[drover.CodeOf(err)]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Message returns what a client may read of err. It is err's text: our errors carry no secrets.
func Message(err error) string { return err.Error() }
