//go:build !race

package simulator

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	judged = flag.String("fleet.judge", "", "print how the loads with this in their names are judged (all = all of them)")
	judges = flag.Int("fleet.judge.seeds", 2, "how many seeds")
	judge1 = flag.Uint64("fleet.judge.first", 1, "the first of them")
	length = flag.Duration("fleet.judge.length", 24*time.Hour, "how long work comes")
)

// By money and waiting together our rules are better than the peers', whatever an hour of waiting is worth. Here it is tried on
// some of the loads, for half a day; on all of them with -fleet.judge all, as a table.
func TestRulesAreBetterThanThePeers(t *testing.T) {
	t.Parallel()
	loads := Loads()
	if *judged != "" {
		table(t, loads)
		return
	}
	for _, tt := range []struct {
		load  int
		worst float64 // of the best peer
	}{{1, 1}, {4, 1}, {7, 1.01}, {9, 1}} {
		t.Run(loads[tt.load].Name, func(t *testing.T) {
			t.Parallel()
			c, err := loads[tt.load].Compare(1, 2, 12*time.Hour)
			require.NoError(t, err)
			ours, best := 0.0, 0.0
			for k, w := range WaitCosts {
				t.Logf("%s at %g: %.2f, the best peer %.2f", loads[tt.load].Name, w, c.Ours[k].Total, c.Best(k))
				require.LessOrEqual(t, c.Ours[k].Total, tt.worst*c.Best(k), "at %g", w)
				ours, best = ours+c.Ours[k].Total, best+c.Best(k)
			}
			require.Less(t, ours, 0.95*best)
		})
	}
}

func table(t *testing.T, loads []Load) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	var names []string
	for _, r := range Peers() {
		names = append(names, r.Name)
	}
	fmt.Fprintln(w, "load\twait cost\tours\tmoney\tmean wait\tbought\tagain\t"+strings.Join(names, "\t")+"\tours/best")
	lines := make([][]string, len(loads))
	t.Run("loads", func(t *testing.T) {
		for n := range loads {
			l := &loads[n]
			if *judged != "all" && !strings.Contains(l.Name, *judged) {
				continue
			}
			t.Run(l.Name, func(t *testing.T) {
				t.Parallel()
				c, err := l.Compare(*judge1, *judges, *length)
				require.NoError(t, err)
				for k, cost := range WaitCosts {
					v := c.Ours[k]
					line := fmt.Sprintf("%s\t%g\t%.2f\t%.2f\t%.1fs\t%d\t%d", l.Name, cost, v.Total, v.Money, v.Wait.Seconds(), v.Bought / *judges,
						v.Again / *judges)
					for p := range c.Peers {
						line += fmt.Sprintf("\t%.2f", c.Peers[p][k].Total)
					}
					lines[n] = append(lines[n], fmt.Sprintf("%s\t%.3f", line, v.Total/c.Best(k)))
				}
			})
		}
	})
	for _, l := range lines {
		for _, line := range l {
			fmt.Fprintln(w, line)
		}
	}
	require.NoError(t, w.Flush())
}
