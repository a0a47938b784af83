package loopback

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// The files of a machine's folder.
const (
	recordFile = "machine.json"
	agentFile  = "agent.hcl"
	logFile    = "agent.log"
	dataFolder = "data"
)

// record is what is kept of a machine.
type record struct {
	provider.Machine // its State follows from what is below, and is not written

	Capacity drover.Capacity
	Started  bool      // its agent was started once
	EndedAt  time.Time // zero while it lives
	Dying    bool      // ended, but not all of it may be gone
	PID      int       // of its agent, if that is known
	Born     uint64    // when that started, as the process table says
}

var validID = regexp.MustCompile(`^lo-[0-9a-f]{16}$`)

// idOf derives the machine's id from the intent, so that a repeated create finds the machine.
func idOf(owner, intent string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + intent))
	return "lo-" + hex.EncodeToString(sum[:8])
}

func (p *Provider) folder(id string) string { return filepath.Join(p.cfg.Dir, id) }

// ids returns those of all machines in the folder, in their order.
func (p *Provider) ids() ([]string, error) {
	entries, err := os.ReadDir(p.cfg.Dir)
	if err != nil {
		return nil, transient("listing machines", err)
	}
	var list []string
	for _, e := range entries {
		if validID.MatchString(e.Name()) {
			list = append(list, e.Name())
		}
	}
	slices.Sort(list)
	return list, nil
}

// read finds a machine. Errors: NotFound.
func (p *Provider) read(id string) (*record, error) {
	if !validID.MatchString(id) {
		return nil, notFound(id)
	}
	data, err := os.ReadFile(filepath.Join(p.folder(id), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(id)
	}
	r := &record{}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, transient("reading machine "+id, err)
	}
	if r.Tags == nil {
		r.Tags = map[string]string{}
	}
	return r, nil
}

// write keeps a record; nobody ever reads half of one.
func (p *Provider) write(r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		path := filepath.Join(p.folder(r.ID), recordFile)
		if err = os.WriteFile(path+".new", data, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return transient("keeping machine "+r.ID, err)
	}
	return nil
}

// machine is the record as the seam tells it.
func (r *record) machine() provider.Machine {
	m := r.Machine
	m.State = provider.Pending
	switch {
	case r.Dying:
		m.State = provider.Terminating
	case !r.EndedAt.IsZero():
		m.State = provider.Terminated
	case r.PID != 0:
		m.State = provider.Running
	}
	return m
}

// tail returns the last bytes of a file; nothing of one that is not there.
func tail(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, transient("reading the console", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd) // then it is read from the start, and is longer
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, transient("reading the console", err)
	}
	return data, nil
}
