package kmstest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Service is one of the services.
type Service struct {
	*httptest.Server

	mu     sync.Mutex
	faults []http.HandlerFunc
	calls  int
	seals  map[string]cipher.AEAD // by the key's id
}

// serve starts a service.
func serve(t *testing.T, h http.HandlerFunc) *Service {
	t.Helper()
	s := &Service{seals: map[string]cipher.AEAD{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls++
		if len(s.faults) > 0 {
			h := s.faults[0]
			s.faults = s.faults[1:]
			s.mu.Unlock()
			h(w, r)
			return
		}
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Fail has the next requests answered by these, one each.
func (s *Service) Fail(with ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, with...)
}

// Calls returns how many requests there were.
func (s *Service) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Says answers with a status and a text.
func Says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// Hangs never answers.
func Hangs(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // who went away is noticed once the body was read
	<-r.Context().Done()
}

// of is the key of that id.
func (s *Service) of(id string) cipher.AEAD {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seals[id] == nil {
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		block, err := aes.NewCipher(key)
		if err != nil {
			panic(err)
		}
		if s.seals[id], err = cipher.NewGCM(block); err != nil {
			panic(err)
		}
	}
	return s.seals[id]
}

func (s *Service) seal(id string, plain []byte) []byte {
	nonce := make([]byte, 12)
	_, _ = rand.Read(nonce)
	return s.of(id).Seal(nonce, nonce, plain, nil)
}

func (s *Service) open(id string, text []byte) ([]byte, bool) {
	if len(text) < 12 {
		return nil, false
	}
	plain, err := s.of(id).Open(nil, text[:12], text[12:], nil)
	return plain, err == nil
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	answer(w, v)
}
