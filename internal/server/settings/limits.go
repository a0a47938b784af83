package settings

import (
	"net/netip"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/throttle"
)

// Limits are those of requests; nil if there are none.
func Limits(l *config.Limits) *httpapi.Limits {
	if l.TokenRate == 0 && l.AddressRate == 0 {
		return nil
	}
	out := &httpapi.Limits{}
	if l.TokenRate > 0 {
		out.Tokens = throttle.New[string](l.TokenRate, l.TokenBurst)
	}
	if l.AddressRate > 0 {
		out.Addresses = throttle.New[netip.Addr](l.AddressRate, l.AddressBurst)
	}
	return out
}
