package cookies

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// flashSeconds is how long what an action did waits for the page that tells it.
const flashSeconds = 60

// flashKey signs what this process has its pages tell. Another server's page tells nothing, which is no harm.
var flashKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
})

func flashName(r *http.Request) string { return name(r) + "-done" }

// flashSum binds what is told to the page that tells it and to the viewer's session: no link, and no other site, can have a page tell it.
func flashSum(r *http.Request, path, done string) string {
	sum := hmac.New(sha256.New, flashKey())
	for _, part := range []string{Token(r), path, done} {
		_, _ = sum.Write([]byte(part))
		_, _ = sum.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// Tell leads to a page of this one, which tells once what the action did that done stands for.
func Tell(w http.ResponseWriter, r *http.Request, at html.URL, done string) {
	path, _, _ := strings.Cut(at.String(), "?")
	http.SetCookie(w, flashCookie(r, done+"."+flashSum(r, path, done), flashSeconds))
	http.Redirect(w, r, at.String(), http.StatusSeeOther)
}

func flashCookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: flashName(r), Value: value, MaxAge: seconds, Path: "/ui", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	}
}

// Told is what the page is to tell, as Tell said it; "" if that is nothing.
func Told(r *http.Request) string {
	c, err := r.Cookie(flashName(r))
	if err != nil {
		return ""
	}
	done, sum, _ := strings.Cut(c.Value, ".")
	if !hmac.Equal([]byte(sum), []byte(flashSum(r, r.URL.EscapedPath(), done))) {
		return ""
	}
	return done
}

// Forget ends what the page has told.
func Forget(w http.ResponseWriter, r *http.Request) {
	if Told(r) != "" {
		http.SetCookie(w, flashCookie(r, "", -1))
	}
}
