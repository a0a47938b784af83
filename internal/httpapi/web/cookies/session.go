package cookies

import (
	"encoding/base64"
	"net"
	"net/http"
)

// name is the session's. Browsers send cookies to all ports of a host, so the port is in the name: two agents of one machine do not
// sign each other out.
func name(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "drover"
	}
	return "drover-" + port
}

// Token is the token that the viewer signed in with; "" of who did not. Only this page reads the cookie: the API does not, so that no
// page of others can act through it.
func Token(r *http.Request) string {
	cookie, err := r.Cookie(name(r))
	if err != nil {
		return ""
	}
	token, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return string(token)
}

// OfToken is the session's cookie for a token.
func OfToken(r *http.Request, token string) *http.Cookie {
	return &http.Cookie{
		Name: name(r), Value: base64.RawURLEncoding.EncodeToString([]byte(token)),
		Path: "/ui", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

// SetToken sets the session, which ends with the browser; "" ends it now. No script can read it, and no other site can have it sent.
func SetToken(w http.ResponseWriter, r *http.Request, token string) {
	c := OfToken(r, token)
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// SetTheme remembers light or dark; anything else is the system's.
func SetTheme(w http.ResponseWriter, r *http.Request, theme string) {
	http.SetCookie(w, &http.Cookie{
		Name: themeCookie, Value: themeNamed(theme), Path: "/ui", MaxAge: 365 * 24 * 3600, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

const themeCookie = "drover-theme"

// Theme is the viewer's: "light", "dark" or "" for the system's.
func Theme(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil {
		return ""
	}
	return themeNamed(c.Value)
}

func themeNamed(name string) string {
	if name == "light" || name == "dark" {
		return name
	}
	return ""
}
