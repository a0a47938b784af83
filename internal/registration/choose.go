package registration

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/drover-project/drover/service"
)

// Choose returns the n registrations that rank first for the key. Each has a rank of its own with each key, so that one that comes or
// goes changes no more than its own place.
func Choose(list []*service.Registration, n int, key string) []*service.Registration {
	rank := func(r *service.Registration) string {
		sum := sha256.Sum256([]byte(key + "\x00" + r.ID))
		return string(sum[:])
	}
	slices.SortFunc(list, func(a, b *service.Registration) int { return strings.Compare(rank(a), rank(b)) })
	return list[:min(n, len(list))]
}
