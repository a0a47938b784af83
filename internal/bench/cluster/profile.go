package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
)

// Profile keeps a CPU profile of each server and of the node in the folder, of so many seconds from now, and a heap profile behind
// it. It returns a function that waits for them. It needs Config.Debug.
func (p *Plane) Profile(ctx context.Context, dir, name string, seconds int) (wait func() error) {
	var all sync.WaitGroup
	agents := slices.Concat(p.Servers, p.joined)
	errs := make([]error, len(agents))
	for i, a := range agents {
		all.Go(func() { // ends with the profiles
			file := filepath.Join(dir, name+"-"+filepath.Base(filepath.Dir(a.log)))
			errs[i] = errors.Join(
				a.fetch(ctx, fmt.Sprintf("/v1/agent/pprof/profile?seconds=%d", seconds), file+".cpu.prof"),
				a.fetch(ctx, "/v1/agent/pprof/heap", file+".heap.prof"),
			)
		})
	}
	return func() error { all.Wait(); return errors.Join(errs...) }
}

// fetch keeps the answer to a request in a file.
func (a *Agent) fetch(ctx context.Context, path, file string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for a profile: %s", resp.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, resp.Body)
	return errors.Join(err, out.Close())
}

// Profile has each process of simulated nodes keep a CPU profile from now until Profiled, as dir/name-nodesN.cpu.prof, and one of its
// memory then, as dir/name-nodesN.heap.prof.
func (n *Nodes) Profile(dir, name string) error {
	for i, in := range n.inputs {
		if _, err := fmt.Fprintf(in, "profile %s\n", filepath.Join(dir, fmt.Sprintf("%s-nodes%d", name, i))); err != nil {
			return err
		}
	}
	return nil
}

// Profiled ends the profiles.
func (n *Nodes) Profiled() error {
	for _, in := range n.inputs {
		if _, err := io.WriteString(in, "profiled\n"); err != nil {
			return err
		}
	}
	return nil
}

// Obey does what lines of a process's input say (Nodes.Profile), until it ends.
func Obey(lines io.Reader) error {
	scan := bufio.NewScanner(lines)
	last := ""
	for scan.Scan() {
		name, found := strings.CutPrefix(scan.Text(), "profile ")
		if !found {
			pprof.StopCPUProfile() // its file is whole then
			if err := keepHeap(last + ".heap.prof"); err != nil {
				return err
			}
			continue
		}
		last = name
		file, err := os.Create(name + ".cpu.prof")
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
	}
	return scan.Err()
}

// keepHeap keeps what the process has in memory.
func keepHeap(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}
