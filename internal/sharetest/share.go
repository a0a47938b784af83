package sharetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/flock"
)

const look = 20 * time.Millisecond

// Take waits until the test's process has a share of the machine, and gives it back when no test of the process needs it
// any more. There are as many shares as processors. All tests of a process have the same one, so that none ever waits for
// another of its own process: -parallel bounds those.
func Take(t testing.TB) {
	t.Helper()
	mine.Lock()
	defer mine.Unlock()
	if mine.users == 0 {
		slot, err := acquire()
		if err != nil {
			t.Fatal("taking a share of the machine:", err)
		}
		mine.slot = slot
	}
	mine.users++
	t.Cleanup(giveBack)
}

func giveBack() {
	mine.Lock()
	defer mine.Unlock()
	if mine.users--; mine.users == 0 {
		_ = flock.Close(mine.slot)
	}
}

// mine is the share of this process.
var mine struct { // of the process
	sync.Mutex
	users int      // guarded by the mutex
	slot  *os.File // guarded by the mutex; valid while there are users
}

// Folder is where the shares of all tests of this user lie. It stays what it is at the first call, which comes before a
// test changes TMPDIR.
func Folder() string { return folder() }

var folder = sync.OnceValue(func() string { // of the process, as its TMPDIR
	return filepath.Join(os.TempDir(), fmt.Sprintf("drover-shares-%d", os.Getuid()))
})

// acquire takes the first slot that is free. A process that is killed gives its slot back by that.
func acquire() (*os.File, error) {
	if err := os.MkdirAll(Folder(), 0o700); err != nil {
		return nil, err
	}
	for {
		for i := range runtime.NumCPU() {
			f, err := os.OpenFile(filepath.Join(Folder(), fmt.Sprint(i)), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil, err
			}
			if flock.TryExclusive(f) {
				return f, nil
			}
			_ = f.Close()
		}
		time.Sleep(look)
	}
}
