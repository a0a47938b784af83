package drover

import (
	"context"
	"errors"
	"fmt"
)

// Code says what kind of error it is. The set is closed: httpapi maps it to a status once, cli to an exit code once.
type Code uint8

// The error codes.
const (
	Internal       Code = iota // a fault of ours; also every error without a code
	Invalid                    // the request is wrong: the message names the field and the fix
	NotFound                   // no such thing
	Gone                       // it was there and ended (a released runner)
	Conflict                   // it is not in a state for this, or the index check failed
	NotLeader                  // ask another server
	Unauthorized               // no or wrong token
	Forbidden                  // not allowed by configuration or policy
	Unavailable                // cannot be done now (node away, shutting down); try again
	Exhausted                  // no capacity: the pool is empty, a quota is reached
	RateLimited                // too many requests
	Canceled                   // the caller went away
	TooLarge                   // a body, file or frame over its limit
	NotImplemented             // known, but not there yet
)

var codeNames = [...]string{
	"internal", "invalid", "not_found", "gone", "conflict", "not_leader", "unauthorized", "forbidden",
	"unavailable", "exhausted", "rate_limited", "canceled", "too_large", "not_implemented",
}

// String returns the code's name as it stands in native API error bodies.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// ParseCode is the inverse of Code.String; an unknown name is Internal.
func ParseCode(s string) Code {
	for i, n := range codeNames {
		if n == s {
			return Code(i)
		}
	}
	return Internal
}

// Error is an error with a code. Make one with Errorf.
type Error struct {
	Code    Code
	message string
	cause   error
}

// Error returns the message.
func (e *Error) Error() string { return e.message }

// Unwrap returns the error given to %w, if any.
func (e *Error) Unwrap() error { return e.cause }

// Errorf formats like fmt.Errorf (with %w) and attaches the code.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, message: err.Error(), cause: errors.Unwrap(err)}
}

// CodeOf returns the code of the outermost *Error in err's chain, Canceled for an ended context, else Internal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Canceled
	}
	return Internal
}
