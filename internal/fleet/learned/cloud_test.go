package learned

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// A cloud may name its quotas by other names than the offerings do: what it refused is not asked for again at once.
func TestAQuotaByAnotherName(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := New(1, provider.Capabilities{})
	o := &fleet.Offering{Key: "k", QuotaGroup: "small", QuotaUnits: 1}
	b.Created(now, o, "", 0, 2, &provider.Error{Kind: provider.Quota, Group: "all machines", Limit: 7})
	q, met := b.Quota("small")
	require.True(t, met)
	require.Equal(t, int64(2), q.Limit)
	require.True(t, q.RetryAt.After(now))
	b.Created(now, o, "", 0, 2, &provider.Error{Kind: provider.Quota, Group: "small", Limit: 7})
	q, _ = b.Quota("small")
	require.Equal(t, int64(7), q.Limit)
}
