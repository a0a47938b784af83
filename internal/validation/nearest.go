package validation

import "strings"

// Nearest returns the known word that somebody who mistyped it may have meant: one that differs in two letters at most, and in less
// than half of them, or that begins so. It is "" if none does. Of several it is the first of the nearest.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 3
	for _, k := range known {
		n := distance(word, strings.ToLower(k))
		if len(word) > 2 && n > 2 && strings.HasPrefix(strings.ToLower(k), word) {
			n = 2
		}
		if n < least && 2*n < len(k) {
			best, least = k, n
		}
	}
	return best
}

// distance is the number of letters that one must add, leave out, change or swap with the next, to make y of x.
func distance(x, y string) int {
	before, last, now := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		now[0] = i
		for j := 1; j <= len(y); j++ {
			now[j] = min(last[j], now[j-1]) + 1
			if x[i-1] == y[j-1] {
				now[j] = min(now[j], last[j-1])
			} else {
				now[j] = min(now[j], last[j-1]+1)
			}
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(y)]
}
