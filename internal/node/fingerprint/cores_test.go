package fingerprint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/validation"
)

func TestCoresThatAreLent(t *testing.T) {
	t.Parallel()
	ids := func(text string) validation.IDs {
		list, err := validation.ParseIDs(text)
		require.NoError(t, err)
		return list
	}
	for _, c := range []struct {
		of, but string
		lent    []uint16
		kept    int64
	}{
		{"", "", []uint16{0, 1, 2, 3}, 0},
		{"", "0", []uint16{1, 2, 3}, 1000},
		{"1-9", "", []uint16{1, 2, 3}, 0},
		{"1-3", "0-1", []uint16{2, 3}, 2000},
		{"", "0-99", nil, 4000},
		{"7", "8", nil, 0},
	} {
		cores := Cores{Of: ids(c.of), But: ids(c.but)}
		require.Equal(t, c.lent, cores.Lent(4), "%+v", c)
		require.Equal(t, c.kept, cores.Kept(4, 4000), "%+v", c)
		cores.None = true
		require.Empty(t, cores.Lent(4))
		require.Equal(t, c.kept, cores.Kept(4, 4000), "%+v", c)
	}
	require.Zero(t, Cores{But: ids("0")}.Kept(0, 4000))
}
