package simulator

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	seeds = flag.Int("fleet.seeds", 25, "fault seeds to simulate")
	first = flag.Int("fleet.first", 0, "the first of them")
)

func TestSimulationSurvivesFaults(t *testing.T) {
	t.Parallel()
	next := make(chan uint64)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { // ends when next is closed
			for seed := range next {
				res, err := Run(Faulty(seed))
				if err != nil {
					t.Errorf("%s\n%s", err, res)
				}
			}
		})
	}
	for seed := range *seeds {
		next <- uint64(*first + seed)
	}
	close(next)
	all.Wait()
}

func TestSimulationRepeats(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			a, err := Run(Faulty(1000 + seed))
			require.NoError(t, err)
			b, err := Run(Faulty(1000 + seed))
			require.NoError(t, err)
			require.Equal(t, a.Hash, b.Hash)
			require.Equal(t, a.String(), b.String())
		})
	}
}
