package supervisor

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A program whose first thread has ended looks like a dead one, and runs on with its others.
func TestWhatRunsOnWithoutItsFirstThreadIsKilled(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	r := run(t, c, sh(`setsid python3 -c '
import ctypes, threading, time
threading.Thread(target=lambda: time.sleep(1000)).start()
ctypes.CDLL(None).syscall(60, 0)' > /dev/null 2>&1 &
until [ "$(cut -d " " -f 3 /proc/$!/stat)" = Z ]; do sleep 0.01; done; echo $!`))
	pid := strings.TrimSpace(string(r.stdout))
	require.NotEmpty(t, pid)
	require.Eventually(t, func() bool { // drover-init collects it a moment later
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	}, time.Minute, 5*time.Millisecond)
}
