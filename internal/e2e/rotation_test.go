package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// TestRootKeysAreRotatedWhileAServerDies: variables are read at all servers and written while the root key is rotated and all is encrypted
// anew, and the leader is killed in between. What is read is always right, nothing that was acknowledged is lost, and the server that comes
// back reads all of it with the keys of the others.
func TestRootKeysAreRotatedWhileAServerDies(t *testing.T) {
	t.Parallel()
	const variables = 20
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	path := func(i int) string { return fmt.Sprint("app/", i) }
	eventually(t, "a first root key", func() (bool, string) {
		_, _, err := r.list[0].nomad().Variables().Update(&api.Variable{Path: path(0), Items: map[string]string{"of": path(0)}}, nil)
		return err == nil, fmt.Sprint(err)
	})
	for i := range variables {
		variable(t, r.list[0].nomad(), path(i), map[string]string{"of": path(i)})
	}
	w := &rotating{t: t, done: make(chan struct{})}
	for n, a := range r.list {
		w.all.Go(func() { w.read(a.nomad(), n, variables) }) // ends with done
	}
	w.all.Go(func() { w.write(r.list[(leads+1)%3].nomad()) }) // likewise

	left := r.but(leads)
	rotate := func(a *agent) {
		eventually(t, "a rotation", func() (bool, string) {
			_, _, err := a.nomad().Keyring().Rotate(&api.KeyringRotateOptions{Full: true}, nil)
			return err == nil, fmt.Sprint(err)
		})
	}
	rotate(left[0])
	rotate(left[1])
	w.goesOn("before the leader's death")
	r.list[leads].PullThePlug()
	rotate(left[0])
	rotate(left[1])
	w.goesOn("after it")
	close(w.done)
	w.all.Wait()

	r.list[leads] = r.start(leads, 3)
	r.agreed(3, r.list...)
	for _, a := range r.list {
		for i := range variables {
			eventually(t, path(i)+" at each server, which may be behind", func() (bool, string) {
				v, _, err := a.nomad().Variables().Read(path(i), &api.QueryOptions{AllowStale: true})
				if err != nil {
					require.ErrorIs(t, err, api.ErrVariablePathNotFound)
					return false, err.Error()
				}
				require.Equal(t, path(i), v.Items["of"])
				return true, ""
			})
		}
		v, _, err := a.nomad().Variables().Read("count", nil)
		require.NoError(t, err)
		n, err := strconv.ParseInt(v.Items["n"], 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, w.written.Load(), "what was acknowledged")
	}
	eventually(t, "one active key, and none that is still being replaced", func() (bool, string) {
		keys, _, err := r.list[leads].nomad().Keyring().List(nil)
		require.NoError(t, err)
		states, active := "", 0
		for _, k := range keys {
			states += fmt.Sprint(" ", k.State)
			if k.State == "active" {
				active++
			}
			if k.State == "rekeying" {
				return false, states
			}
		}
		return active == 1 && len(keys) > 4, states
	})
}

// rotating is who reads and writes variables while their keys change.
type rotating struct {
	t       *testing.T
	all     sync.WaitGroup
	done    chan struct{} // closed when it is to end
	reads   atomic.Int64
	written atomic.Int64 // the highest number that was acknowledged
}

func (w *rotating) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// absent is what says that there is no server or no leader, and nothing of keys.
var absent = regexp.MustCompile(`connection re|EOF|broken pipe|leader`)

// read reads variables at a server. There may be no answer while there is no leader, or no server; but never a wrong one.
func (w *rotating) read(c *api.Client, from, of int) {
	for i := from; !w.over(); i++ {
		path := fmt.Sprint("app/", i%of)
		v, _, err := c.Variables().Read(path, &api.QueryOptions{AllowStale: i%2 == 0})
		if err != nil {
			if !absent.MatchString(err.Error()) {
				w.t.Errorf("%s: %v", path, err)
			}
			continue
		}
		w.reads.Add(1)
		if v.Items["of"] != path {
			w.t.Errorf("%s has %v", path, v.Items)
		}
	}
}

// write counts in a variable.
func (w *rotating) write(c *api.Client) {
	for n := int64(1); !w.over(); n++ {
		_, _, err := c.Variables().Update(&api.Variable{Path: "count", Items: map[string]string{"n": fmt.Sprint(n)}}, nil)
		if err == nil {
			w.written.Store(n)
		}
	}
}

// goesOn waits until more was read and written.
func (w *rotating) goesOn(when string) {
	w.t.Helper()
	reads, written := w.reads.Load(), w.written.Load()
	eventually(w.t, "reads and writes "+when, func() (bool, string) {
		return w.reads.Load() > reads+100 && w.written.Load() > written+10, fmt.Sprint(w.reads.Load(), w.written.Load())
	})
}
