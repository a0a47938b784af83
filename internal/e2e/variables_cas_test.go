package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// checkedWrite is a write of a variable that holds only if nobody wrote it meanwhile, and what came of it.
type checkedWrite struct {
	path    string
	expects uint64 // the index that the variable must have; 0: it must not be there
	index   uint64 // it was written at this one; of a conflict, what the variable had
	applied bool
}

// checkedModel is a variable: its index, 0 while it is not there.
var checkedModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		of := map[string][]porcupine.Operation{}
		for _, op := range history {
			path := op.Input.(checkedWrite).path
			of[path] = append(of[path], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, _ any) (bool, any) {
		w := input.(checkedWrite)
		if w.applied {
			return state == w.expects && w.index > w.expects, w.index
		}
		return state == w.index && w.index != w.expects, state
	},
}

// TestVariablesAreCheckedAndSet: clients write the same variables at once, each only if nobody else did meanwhile. They lose none
// of their writes and see none applied twice: there is an order of all that explains the answers, also with a kill -9 in between.
// How many are written a second is told.
func TestVariablesAreCheckedAndSet(t *testing.T) {
	t.Parallel()
	args := append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "data"), "")...)
	a := start(t, args...)
	const clients, paths, each = 32, 64, 60
	var mu sync.Mutex // guards history
	var history []porcupine.Operation
	began := time.Now()
	write := func(a *agent, client, path int, known *uint64) {
		w := checkedWrite{path: fmt.Sprintf("p/%d", path), expects: *known}
		call := time.Since(began)
		v := api.NewVariable(w.path)
		v.Items["by"], v.ModifyIndex = fmt.Sprint(client), w.expects
		got, _, err := a.nomad().Variables().CheckedUpdate(v, nil)
		conflict := api.ErrCASConflict{}
		switch {
		case err == nil:
			w.index, w.applied = got.ModifyIndex, true
		case errors.As(err, &conflict):
			w.index = conflict.Conflict.ModifyIndex
		default:
			t.Errorf("writing %s: %v", w.path, err)
			return
		}
		*known = w.index
		mu.Lock()
		defer mu.Unlock()
		history = append(history, porcupine.Operation{
			ClientId: client, Input: w, Call: int64(call), Return: int64(time.Since(began)),
		})
	}
	load := func(a *agent) {
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() { // ends with its writes
				known := make([]uint64, paths)
				for i := range each {
					path := (client/4*8 + i%8) % paths // four clients each of the same eight
					write(a, client, path, &known[path])
				}
			})
		}
		all.Wait()
	}
	load(a)
	took := time.Since(began)
	t.Logf("%d checked writes in %s: %.0f a second", len(history), took, float64(len(history))/took.Seconds())
	a.PullThePlug()
	load(start(t, args...))
	require.Len(t, history, 2*clients*each)
	applied := 0
	for _, op := range history {
		if op.Input.(checkedWrite).applied {
			applied++
		}
	}
	require.Greater(t, applied, len(history)/10, "enough of the writes met nobody else's")
	require.Less(t, applied, len(history), "some did")
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(checkedModel, history, time.Minute))
}
