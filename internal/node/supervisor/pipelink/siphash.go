package pipelink

import (
	"encoding/binary"
	"math/bits"
)

// Key is shared by the two ends.
type Key [16]byte

// sum is SipHash-2-4 (Aumasson, Bernstein 2012) of p: a keyed sum that cannot be made without the key, and a small one:
// drover-init has no other use for cryptography.
func sum(key *Key, p []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	last := uint64(len(p)) << 56
	for ; len(p) >= 8; p = p[8:] {
		absorb(&v, binary.LittleEndian.Uint64(p))
	}
	for i, b := range p {
		last |= uint64(b) << (8 * i)
	}
	absorb(&v, last)
	v[2] ^= 0xff
	for range 4 {
		round(&v)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func absorb(v *[4]uint64, m uint64) {
	v[3] ^= m
	round(v)
	round(v)
	v[0] ^= m
}

func round(v *[4]uint64) {
	v[0] += v[1]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[3]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] += v[3]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] += v[1]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[2] = bits.RotateLeft64(v[2], 32)
}
