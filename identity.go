package drover

import (
	"fmt"
	"strings"
	"time"
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
func (w *WorkloadIdentity) IsDefault() bool { return w.Name == "" || w.Name == DefaultIdentity }

// Exposed reports whether the task is given the token.
func (w *WorkloadIdentity) Exposed() bool { return w.Env || w.File }

// Variable is the name of the environment variable that has the token.
func (w *WorkloadIdentity) Variable() string {
	if w.IsDefault() {
		return "NOMAD_TOKEN"
	}
	return "NOMAD_TOKEN_" + strings.ReplaceAll(w.Name, "-", "_")
}

// Path is where the file with the token is, below the task's folder.
func (w *WorkloadIdentity) Path() string {
	switch {
	case w.Filepath != "":
		return w.Filepath
	case w.IsDefault():
		return "secrets/nomad_token"
	}
	return "secrets/nomad_" + w.Name + ".jwt"
}

// AllIdentities returns the task's identities, its default one first if the job says it.
func (t *Task) AllIdentities() []*WorkloadIdentity {
	out := make([]*WorkloadIdentity, 0, len(t.Identities)+1)
	if t.Identity != nil {
		out = append(out, t.Identity)
	}
	for _, w := range t.Identities {
		if w != nil {
			out = append(out, w)
		}
	}
	return out
}

// isPlainName reports whether identities may be called so: the name is in a variable's and a file's. It is no regular
// expression, as each supervisor would compile that when it starts, for a fifth of a megabyte.
func isPlainName(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// validateIdentities checks a task's identities: each has a name of its own, and a file of its own inside the allocation.
func (t *Task) validateIdentities(v *report, at string) {
	names, paths := map[string]bool{}, map[string]string{}
	check := func(at string, w *WorkloadIdentity) {
		w.validate(v, at)
		if !w.File {
			return
		}
		if other, has := paths[w.Path()]; has {
			v.Addf(at+".Filepath", "%q is that of the identity %q, too", w.Path(), other)
		}
		paths[w.Path()] = w.Name
	}
	if t.Identity != nil {
		v.Check(t.Identity.IsDefault(), at+".Identity.Name", "must be %q, got %q: others are in Identities", DefaultIdentity, t.Identity.Name)
		check(at+".Identity", t.Identity)
	}
	for i, w := range t.Identities {
		where := fmt.Sprintf("%s.Identities[%d]", at, i)
		if w == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(!w.IsDefault(), where+".Name", "must be set and not be %q", DefaultIdentity)
		v.Check(!names[w.Name], where+".Name", "%q is that of another identity, too", w.Name)
		names[w.Name] = true
		check(where, w)
	}
}

// validate checks one identity.
func (w *WorkloadIdentity) validate(v *report, at string) {
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
	v.Check(inAllocation(w.Filepath), at+".Filepath", "must not leave the allocation's folder, got %q", w.Filepath)
	for _, aud := range w.Audience {
		v.Check(aud != "", at+".Audience", "an audience must not be empty")
	}
}
