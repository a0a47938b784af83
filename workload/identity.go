package workload

import (
	"strings"
	"time"

	"github.com/drover-project/drover/internal/validation"
)

// DefaultIdentity is the name of a task's identity that has no other.
const DefaultIdentity = "default"

// What becomes of a task when its token was renewed.
const (
	IdentityNoop    = "noop"
	IdentityRestart = "restart"
	IdentitySignal  = "signal"
)

// MinIdentityTTL is the shortest life of a token: it is renewed at half of it.
const MinIdentityTTL = 10 * time.Second

// IsDefault reports whether it is a task's own identity, which the servers take.
func (w *Identity) IsDefault() bool { return w.Name == "" || w.Name == DefaultIdentity }

// Exposed reports whether the task is given the token.
func (w *Identity) Exposed() bool { return w.Env || w.File }

// Variable is the name of the environment variable that has the token.
func (w *Identity) Variable() string {
	if w.IsDefault() {
		return "NOMAD_TOKEN"
	}
	return "NOMAD_TOKEN_" + strings.ReplaceAll(w.Name, "-", "_")
}

// Path is where the file with the token is, below the task's folder.
func (w *Identity) Path() string {
	switch {
	case w.Filepath != "":
		return w.Filepath
	case w.IsDefault():
		return "secrets/nomad_token"
	}
	return "secrets/nomad_" + w.Name + ".jwt"
}

// isPlainName reports whether identities may be called so: the name is in a variable's and a file's. It is no regular
// expression, as each supervisor would compile that when it starts, for a fifth of a megabyte.
func isPlainName(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// Validate checks one identity.
func (w *Identity) Validate(v *validation.Report, at string) {
	v.Check(w.Name == "" || isPlainName(w.Name), at+".Name",
		"must have 1 to 128 letters, digits, - and _, got %q", w.Name)
	switch w.ChangeMode {
	case "", IdentityNoop, IdentityRestart:
	case IdentitySignal:
		v.Check(w.ChangeSignal != "", at+".ChangeSignal", "must be set for change_mode signal")
	default:
		v.Addf(at+".ChangeMode", "must be noop, restart or signal, got %q", w.ChangeMode)
	}
	v.Check(w.ChangeSignal == "" || w.ChangeMode == IdentitySignal, at+".ChangeSignal", "needs change_mode signal")
	v.Check(w.TTL == 0 || w.TTL >= MinIdentityTTL, at+".TTL",
		"must be at least %v, or 0 for a token without an end, got %v", MinIdentityTTL, w.TTL)
	v.Check(w.Filepath == "" || w.File, at+".Filepath", "needs file = true")
	v.Check(validation.InAllocation(w.Filepath), at+".Filepath", "must not leave the allocation's folder, got %q", w.Filepath)
	for _, aud := range w.Audience {
		v.Check(aud != "", at+".Audience", "an audience must not be empty")
	}
}

// Identity says which signed token of its own a task has, and how the task is told of it. The one without a name, or with the name
// default, is Nomad's own: the cluster's servers take it.
type Identity struct {
	Name         string
	Audience     []string
	ChangeMode   string // noop (default), restart, signal
	ChangeSignal string
	Env          bool
	File         bool
	Filepath     string // default secrets/nomad_token, or secrets/nomad_NAME.jwt
	ServiceName  string
	TTL          time.Duration // 0 = the token has no end
	ExtraClaims  []string      `json:",omitempty"` // names of the namespace's OptionalExtraClaims that the token has, too
}
