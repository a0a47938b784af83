package raftlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheNewestWritesAreRemembered(t *testing.T) {
	t.Parallel()
	var w writes
	require.Equal(t, Writes{}, w.sum())
	w.add(time.Hour)
	w.add(time.Second)
	require.Equal(t, Writes{2, (time.Hour + time.Second) / 2, time.Hour}, w.sum())
	for range remembered {
		w.add(time.Second)
	}
	require.Equal(t, Writes{remembered, time.Second, time.Second}, w.sum())
}
