package provider

import (
	"errors"
	"fmt"
	"time"

	"github.com/drover-project/drover"
)

// Kind is what a failed call means for the next ones.
type Kind string

// The kinds.
const (
	Transient   Kind = "transient"    // may work the next time
	RateLimited Kind = "rate_limited" // not before RetryAt
	Quota       Kind = "quota"        // the group's limit is reached
	Capacity    Kind = "capacity"     // the cloud has none of Scope now
	NotFound    Kind = "not_found"    // the machine is not there
	Ambiguous   Kind = "ambiguous"    // it may have happened: look before repeating without idempotency
	Auth        Kind = "auth"         // credentials are refused
	Config      Kind = "config"       // the request can never work: image, type, subnet
)

// Scope is what a capacity error is about.
type Scope string

// The scopes, narrow to wide.
const (
	ScopeOffering Scope = "offering" // this type, zone and market
	ScopeType     Scope = "type"     // the type and market in every zone
	ScopeZone     Scope = "zone"     // everything of the market in the zone
	ScopeFamily   Scope = "family"
	ScopeAll      Scope = "all"
)

// Error is how calls fail.
type Error struct {
	Kind    Kind
	Scope   Scope     // of Capacity
	Group   string    // of Quota
	Limit   int64     // of Quota, if the cloud tells
	RetryAt time.Time // of RateLimited
	Message string    // the cloud's, for people
}

// Error tells kind and message.
func (e *Error) Error() string {
	switch e.Kind {
	case Quota:
		return fmt.Sprintf("quota of %s: %s", e.Group, e.Message)
	case Capacity:
		return fmt.Sprintf("no capacity (%s): %s", e.Scope, e.Message)
	case RateLimited:
		return fmt.Sprintf("rate limited until %s: %s", e.RetryAt.UTC().Format(time.RFC3339), e.Message)
	default:
		return string(e.Kind) + ": " + e.Message
	}
}

// KindOf tells what err means: an error without a kind, and a call that was cut off, are Ambiguous.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Ambiguous
}

// CodeOf maps a kind to the root's code.
func CodeOf(err error) drover.Code {
	switch KindOf(err) {
	case RateLimited:
		return drover.RateLimited
	case Quota, Capacity:
		return drover.Exhausted
	case NotFound:
		return drover.NotFound
	case Auth:
		return drover.Forbidden
	case Config:
		return drover.Invalid
	case Transient, Ambiguous:
	}
	return drover.Unavailable
}
