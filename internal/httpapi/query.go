package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/drover-project/drover"
)

// BoolParam reads a query parameter as strconv.ParseBool does; fallback if it is missing or empty.
func BoolParam(r *http.Request, name string, fallback bool) (bool, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return fallback, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, drover.Errorf(drover.Invalid, "parameter %q is %q, but true or false is expected", name, v)
	}
	return b, nil
}

// IntParam reads a whole number.
func IntParam(r *http.Request, name string, fallback int64) (int64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, drover.Errorf(drover.Invalid, "parameter %q is %q, but a whole number is expected", name, v)
	}
	return n, nil
}

// UintParam reads a whole number that is not negative.
func UintParam(r *http.Request, name string, fallback uint64) (uint64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return fallback, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, drover.Errorf(drover.Invalid, "parameter %q is %q, but a whole number from 0 is expected", name, v)
	}
	return n, nil
}

// DurationParam reads a duration ("30s"; a bare number is milliseconds, as Nomad's client sends it).
func DurationParam(r *http.Request, name string, fallback time.Duration) (time.Duration, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return fallback, nil
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(n) * time.Millisecond, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, drover.Errorf(drover.Invalid, "parameter %q is %q, but a duration such as 30s is expected", name, v)
	}
	return d, nil
}
