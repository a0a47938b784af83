// Package sharetest bounds how many tests with real daemons or many processes run at once on the machine, over all packages
// and all runs of the tests: a machine with much to do makes them slower, and fails none. It starts no goroutines.
package sharetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/flock"
)

const (
	perProcessor = 2 // tests at once: they wait as much as they compute
	look         = 20 * time.Millisecond
)

// Take waits until the test has a share of the machine, and gives it back at the test's end. Subtests have that of the test
// above them, and a test that has one already goes on at once. So whatever starts something heavy may call it.
func Take(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	s := enter(name)
	t.Cleanup(func() { leave(name, s) })
	s.once.Do(func() { s.slot, s.err = acquire() })
	if s.err != nil {
		t.Fatal("taking a share of the machine:", s.err)
	}
}

// Folder is where the shares of all tests of this user lie. It stays what it is at the first call, which comes before a
// test changes TMPDIR.
func Folder() string { return folder() }

var folder = sync.OnceValue(func() string { //nolint:gochecknoglobals // of the process, as its TMPDIR
	return filepath.Join(os.TempDir(), fmt.Sprintf("drover-shares-%d", os.Getuid()))
})

// share is what one top-level test of this process has.
type share struct {
	once sync.Once
	slot *os.File
	err  error

	users int // tests and subtests that have it; guarded by mu
}

var (
	mu     sync.Mutex            //nolint:gochecknoglobals // of the process
	shares = map[string]*share{} //nolint:gochecknoglobals // guarded by mu; by the test's name
)

func enter(name string) *share {
	mu.Lock()
	defer mu.Unlock()
	s := shares[name]
	if s == nil {
		s = &share{}
		shares[name] = s
	}
	s.users++
	return s
}

func leave(name string, s *share) {
	mu.Lock()
	defer mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	delete(shares, name)
	if s.slot != nil {
		_ = flock.Close(s.slot)
	}
}

// acquire takes the first slot that is free. A process that is killed gives its slots back by that.
func acquire() (*os.File, error) {
	if err := os.MkdirAll(folder(), 0o700); err != nil {
		return nil, err
	}
	for {
		for i := range perProcessor * runtime.NumCPU() {
			f, err := os.OpenFile(filepath.Join(folder(), fmt.Sprint(i)), os.O_CREATE|os.O_RDWR, 0o600)
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
