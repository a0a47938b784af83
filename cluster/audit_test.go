package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What several servers recorded comes in one order, each record once, however large pages are and however little a server looks at.
func TestPagesOfSeveralServersHoldEachRecordOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		begun := time.Unix(1_000_000, 0)
		servers := map[string][]AuditRecord{}
		want, got := map[string]int{}, map[string]int{}
		for s := range rapid.IntRange(1, 3).Draw(rt, "servers") {
			name := fmt.Sprint("s", s)
			at := begun
			for seq := range rapid.IntRange(0, 20).Draw(rt, "lines") {
				at = at.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "later")) * time.Second)
				servers[name] = append(servers[name], AuditRecord{Server: name, Seq: uint64(seq + 1), Time: at})
				want[fmt.Sprint(name, seq+1)]++
			}
		}
		n, looks := rapid.IntRange(1, 7).Draw(rt, "page"), rapid.IntRange(1, 7).Draw(rt, "looks at")
		var places AuditPlaces
		last := begun.Add(time.Hour)
		for pages := 0; ; pages++ {
			require.Less(rt, pages, 200, "it comes to an end")
			var parts []AuditPart
			for name, lines := range servers {
				before, asked := places[name]
				if places != nil && !asked {
					continue
				}
				p := AuditPart{Server: name}
				for _, r := range slices.Backward(lines) {
					if before > 0 && r.Seq >= before {
						continue
					}
					p.From, p.Time = r.Seq, r.Time
					p.Records = append(p.Records, r)
					if len(p.Records) >= min(looks, n) {
						break
					}
				}
				if p.From == 1 {
					p.From = 0
				}
				parts = append(parts, p)
			}
			page := JoinAudit(parts, n)
			for _, r := range page.Records {
				require.False(rt, r.Time.After(last))
				last = r.Time
				got[fmt.Sprint(r.Server, r.Seq)]++
			}
			var err error
			if places, err = ParseAuditPlaces(page.NextToken); places == nil {
				break
			}
			require.NoError(rt, err)
		}
		require.Equal(rt, want, got)
	})
}

func TestATokenThatIsNone(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"x", "!", "bnVsbA"} {
		_, err := ParseAuditPlaces(token)
		require.ErrorContains(t, err, "next_token")
	}
	p, err := ParseAuditPlaces(AuditPlaces{"s1.global": 7}.String())
	require.NoError(t, err)
	require.Equal(t, AuditPlaces{"s1.global": 7}, p)
}
