package idp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"
)

// loginTime is how long a person may take at the provider.
const loginTime = 5 * time.Minute

// A state is random bytes, the second in which it ends, and a signature of both and of what the login is for.
const (
	stateRandom = 16
	stateHead   = stateRandom + 8
	stateLength = stateHead + sha256.Size
)

// sign is the signature of texts with this process's key. No two lists of texts give the same bytes.
func (p *Providers) sign(texts ...string) []byte {
	h := hmac.New(sha256.New, p.key[:])
	var n [8]byte
	for _, s := range texts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return h.Sum(nil)
}

// login is what a state is good for.
type login struct {
	method   digest
	redirect string
	nonce    string
}

func (p *Providers) signState(head []byte, l login) []byte {
	return p.sign("state", string(head), string(l.method[:]), l.redirect, l.nonce)
}

// newState returns a state for the login.
func (p *Providers) newState(l login) string {
	head := make([]byte, stateHead, stateLength)
	_, _ = rand.Read(head[:stateRandom]) // never fails, says crypto/rand
	binary.BigEndian.PutUint64(head[stateRandom:], uint64(p.deps.Clock.Now().Add(loginTime).Unix()))
	return base64.RawURLEncoding.EncodeToString(append(head, p.signState(head, l)...))
}

// useState takes a state that was made for the login, once. Errors: Forbidden.
func (p *Providers) useState(state string, l login) error {
	const again = "the login is not one that this server began within the last %s: begin it again"
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(raw) != stateLength || subtle.ConstantTimeCompare(raw[stateHead:], p.signState(raw[:stateHead], l)) != 1 {
		return refused(again, loginTime)
	}
	now, end := p.deps.Clock.Now(), time.Unix(int64(binary.BigEndian.Uint64(raw[stateRandom:])), 0)
	if now.After(end) || end.Sub(now) > loginTime+time.Second {
		return refused(again, loginTime)
	}
	if !p.used.add(state) {
		return refused("the login was completed already: begin another one")
	}
	return nil
}

// verifier is the PKCE verifier of a state: nobody but this process can tell it.
func (p *Providers) verifier(state string) string {
	return base64.RawURLEncoding.EncodeToString(p.sign("pkce", state))
}

// maxUsed is how many used states are remembered. With more within loginTime the oldest can be shown once more; providers take a code
// once, too.
const maxUsed = 1 << 16

// ring remembers what was used last. The zero value is ready.
type ring struct {
	mu   sync.Mutex
	has  map[string]bool // guarded by mu
	list []string        // guarded by mu: the next to forget is at
	at   int             // guarded by mu
}

// add remembers the text; false if it is remembered already.
func (r *ring) add(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.has[text] {
		return false
	}
	if r.has == nil {
		r.has = map[string]bool{}
	}
	r.has[text] = true
	if len(r.list) < maxUsed {
		r.list = append(r.list, text)
		return true
	}
	delete(r.has, r.list[r.at])
	r.list[r.at] = text
	r.at = (r.at + 1) % maxUsed
	return true
}
