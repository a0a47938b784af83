package cookies

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// CallbackPath is where identity providers send browsers back to. It is that of Nomad's page, so that auth methods that were made for that
// allow it.
const CallbackPath = "/ui/settings/tokens"

// Pending is a login under way at an identity provider. The browser keeps it in a cookie, so that only the browser that began a login can
// end it: the nonce is known to nobody else.
type Pending struct{ Method, Nonce, Redirect, Next string }

func pendingName(r *http.Request) string { return name(r) + "-login" }

// SetPending keeps a login for ten minutes; nil forgets it. The cookie comes along when another site sends the browser back, which that
// of the session does not.
func SetPending(w http.ResponseWriter, r *http.Request, p *Pending) {
	c := &http.Cookie{
		Name: pendingName(r), Path: CallbackPath, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	}
	if p != nil {
		text, _ := json.Marshal(p) // texts
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(text), 600
	}
	http.SetCookie(w, c)
}

// PendingOf is the login that the browser began.
func PendingOf(r *http.Request) (p Pending, ok bool) {
	c, err := r.Cookie(pendingName(r))
	if err != nil {
		return p, false
	}
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	return p, err == nil && json.Unmarshal(text, &p) == nil && p.Nonce != ""
}
