package answer

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestASearchIsShort: each element is looked at for each word, so one request of many words took a processor for minutes.
func TestASearchIsShort(t *testing.T) {
	t.Parallel()
	l := Lister[string, string]{Search: Search[string]{
		Words: func(s string) [4]string { return [4]string{s} }, Status: func(s string) string { return s },
	}}
	for field, q := range map[string]Query{
		"search": {Search: strings.Repeat("a ", maxSearch)}, "status": {Statuses: slices.Repeat([]string{"running"}, maxStatuses+1)},
	} {
		_, err := l.keeps(&q)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), field)
		require.ErrorContains(t, err, field)
	}
	keep, err := l.keeps(&Query{Search: strings.Repeat("a", maxSearch), Statuses: slices.Repeat([]string{"running"}, maxStatuses)})
	require.NoError(t, err)
	require.False(t, keep("a"))
}
