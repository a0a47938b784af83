package acl

import (
	"log/slog"
	"time"
)

// OneTimeTTL is how long a one-time token can be exchanged.
const OneTimeTTL = 10 * time.Minute

// OneTimeToken can be exchanged once for the token that it was made with: a browser's address bar may have it, and not the other.
type OneTimeToken struct {
	OneTimeSecretID Secret
	AccessorID      string
	ExpiresAt       time.Time
	CreateIndex     uint64
	ModifyIndex     uint64
}

// String says what it is for, without its secret.
func (t *OneTimeToken) String() string {
	if t == nil {
		return "no one-time token"
	}
	return "one-time token for " + t.AccessorID
}

// LogValue implements slog.LogValuer.
func (t *OneTimeToken) LogValue() slog.Value {
	if t == nil {
		return slog.StringValue("none")
	}
	return slog.GroupValue(slog.String("accessor", t.AccessorID), slog.Time("expires", t.ExpiresAt))
}

// Expired reports whether it is too late to exchange the token.
func (t *OneTimeToken) Expired(now time.Time) bool { return !now.Before(t.ExpiresAt) }

// OneTimeTokenMade is the answer to a request for a one-time token.
type OneTimeTokenMade struct{ OneTimeToken *OneTimeToken }

// OneTimeTokenExchange asks for the token behind a one-time token.
type OneTimeTokenExchange struct{ OneTimeSecretID Secret }

// OneTimeTokenExchanged is the answer to that.
type OneTimeTokenExchanged struct{ Token *Token }

// BootstrapRequest asks for the first management token. BootstrapSecret is the secret it is to have, a UUID; "" = a random one.
type BootstrapRequest struct{ BootstrapSecret Secret }

// Bootstrap remembers when access control was bootstrapped. Doing it again needs the index of the last time.
type Bootstrap struct {
	CreateIndex uint64 // of the first time
	ModifyIndex uint64 // of the last time: the reset index
}
