package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMoneyIsReadable(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0.00", 1.333e-05: "0.000013", 0.000119: "0.00012", 0.0042: "0.0042", 0.0005: "0.0005", 0.05: "0.05", 0.0501: "0.05", 0.1234: "0.12",
		0.999: "1.00", 1: "1.00", 48.333: "48.33", 12345.6: "12345.60", -0.004: "-0.004",
	} {
		require.Equal(t, want, Money(v))
	}
}
