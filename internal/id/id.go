package id

import (
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"math/rand/v2"
)

// Source makes version 4 UUIDs.
type Source interface{ New() string }

// Random draws from the system's generator.
type Random struct{}

// New returns a random UUID.
func (Random) New() string {
	var b [16]byte
	_, _ = cryptorand.Read(b[:]) // never fails (crypto/rand)
	return format(b)
}

// Seeded draws from a seed: the same seed gives the same ids. Not for use by several goroutines at once.
type Seeded struct{ rng *rand.Rand }

// NewSeeded returns a Source for simulations, tests and the scheduler, whose plans must repeat.
func NewSeeded(seed uint64) *Seeded { return &Seeded{rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} }

// New returns the next UUID of the sequence.
func (s *Seeded) New() string {
	var b [16]byte
	for i := 0; i < 16; i += 8 {
		v := s.rng.Uint64()
		for j := range 8 {
			b[i+j] = byte(v >> (8 * j))
		}
	}
	return format(b)
}

// Named returns the UUID that the text gives: the same text gives the same one, and nobody can find another text for it.
func Named(text string) string {
	sum := sha256.Sum256([]byte(text))
	return format([16]byte(sum[:16]))
}

// Seed turns an id into a seed: the same id gives the same one.
func Seed(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

func format(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	s[8] = '-'
	hex.Encode(s[9:13], b[4:6])
	s[13] = '-'
	hex.Encode(s[14:18], b[6:8])
	s[18] = '-'
	hex.Encode(s[19:23], b[8:10])
	s[23] = '-'
	hex.Encode(s[24:36], b[10:16])
	return string(s[:])
}

// Valid reports whether s has the form of a UUID, so that it may be used in a path.
func Valid(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range s {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
