package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Offered picks what is bought: the cheapest offering that fits what was asked for. Errors: Invalid.
func Offered(p *fleet.Policy, ask fleet.Check) (best fleet.Offering, err error) {
	list := slices.DeleteFunc(p.Offerings(), func(o fleet.Offering) bool {
		return ask.Type != "" && o.Type != ask.Type || ask.Zone != "" && o.Zone != ask.Zone || ask.Market != "" && o.Market != ask.Market
	})
	if len(list) == 0 {
		return best, drover.Errorf(drover.Invalid, "fleet.pool.%s: it sells nothing that is of type %q, in zone %q, on market %q (\"\" = any)",
			p.Name, ask.Type, ask.Zone, ask.Market)
	}
	return slices.MinFunc(list, func(a, b fleet.Offering) int { return cmp.Compare(a.Price, b.Price) }), nil
}

// OwnerOf marks the machines of checks from this folder on this machine: what an earlier check left is found, and nothing of
// any fleet's is touched.
func OwnerOf(dataDir, providerName string) string {
	host, _ := os.Hostname() // then the folder has to do
	sum := sha256.Sum256([]byte(host + "\x00" + dataDir + "\x00" + providerName))
	return "drover-check-" + hex.EncodeToString(sum[:8])
}
