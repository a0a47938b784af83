//go:build stepped

package clock

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The date is moved, in either direction, and durations are not.
func TestADateIsStepped(t *testing.T) {
	if path := os.Getenv("DROVER_STEPPED_DATE"); path != "" {
		set := func(by time.Duration) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0) // and do not cut it off: it is mapped
			require.NoError(t, err)
			_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(by.Seconds()))), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		for _, by := range []time.Duration{time.Hour, -time.Hour, 0} {
			from := Wall{}.Now()
			set(by)
			now := Wall{}.Now()
			require.Less(t, now.Sub(from).Abs(), time.Minute)
			require.Less(t, now.Round(0).Sub(time.Now().Add(by).Round(0)).Abs(), time.Minute)
			set(0)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "date")
	require.NoError(t, os.WriteFile(path, make([]byte, 8), 0o600))
	c := exec.Command(os.Args[0], "-test.run=TestADateIsStepped")
	c.Env = append(os.Environ(), "DROVER_STEPPED_DATE="+path)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
