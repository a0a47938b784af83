package exectest

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/tenancy"
)

// Limit bounds how many runners are claimed; 0 ends that.
func (c *Control) Limit(runners int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quota = runners
}

// Refused is how many claims the state refused as they were beyond the limit.
func (c *Control) Refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// claimedOf counts the claimed runners that hold something.
func claimedOf(allocs map[string]*drover.Allocation) (n int) {
	for _, a := range allocs {
		if a.Claim != nil && !a.Terminal() {
			n++
		}
	}
	return n
}

// QuotaAccount serves quota.Accounts.
func (v view) QuotaAccount(string) *quota.Account {
	if v.quota == 0 {
		return nil
	}
	a := &quota.Account{Quota: "q", Limits: &tenancy.QuotaLimit{RegionLimit: &tenancy.QuotaResources{Runners: &v.quota}}}
	a.Add("", quota.Amount{Runners: int64(claimedOf(v.allocs))})
	return a
}
