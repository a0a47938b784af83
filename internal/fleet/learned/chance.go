package learned

import "time"

// Chance is a number in [0, 1) that depends on the cloud's seed and the key only: what chooses among equals by it chooses
// evenly, and the same each time.
func (b *Cloud) Chance(key string) float64 { return chance(b.seed, key, 0) }

// chance is a number in [0, 1) that depends on its arguments only: randomness that
// repeats. It is FNV-1a from the seed on with the end of SplitMix64; hash/fnv begins at a fixed basis, and allocates.
func chance(seed uint64, key string, n int) float64 {
	h := seed ^ 14695981039346656037
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= uint64(n) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return float64((h^h>>31)>>11) / (1 << 53)
}

// backoff is base doubled n times, at most limit, plus up to a fifth of jitter.
func backoff(base, limit time.Duration, n int, jitter float64) time.Duration {
	d := limit
	if n < 20 {
		d = min(base<<n, limit)
	}
	return d + time.Duration(float64(d)*0.2*jitter)
}
