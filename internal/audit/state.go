package audit

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/rotation"
)

// state is what is kept of a sink's chain beside its lines: the key of the next seal, and the last line that was written. Only the user of
// the agent can read its files.
type state struct {
	folder, name string
	head         *os.File
}

// keptState is the file with the key.
type keptState struct {
	Epoch uint64 `json:"epoch"`
	Key   string `json:"key"`
}

// openState reads the state of a sink, or makes it. The first key stays in a file of its own, NAME.key, for whoever verifies.
func openState(folder, name string) (*state, chain, error) {
	c := chain{epoch: 1}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, c, err
	}
	s := &state{folder: folder, name: name}
	text, err := os.ReadFile(s.path(".state"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.key = make([]byte, 32)
		_, _ = rand.Read(c.key) // never fails
		if err := s.write(".key", hex.EncodeToString(c.key)+"\n"); err != nil {
			return nil, c, err
		}
		if err := s.keep(c); err != nil {
			return nil, c, err
		}
	case err != nil:
		return nil, c, err
	default:
		var kept keptState
		if err := json.Unmarshal(text, &kept); err != nil {
			return nil, c, drover.Errorf(drover.Invalid, "%s: %w", s.path(".state"), err)
		}
		if c.key, err = hex.DecodeString(kept.Key); err != nil {
			return nil, c, drover.Errorf(drover.Invalid, "%s: %w", s.path(".state"), err)
		}
		c.epoch = kept.Epoch
	}
	if head, err := ReadHead(s.path(".head")); err == nil {
		c.seq, c.head = head.Seq, head.Hash
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, c, err
	}
	s.head, err = os.OpenFile(s.path(".head"), os.O_CREATE|os.O_WRONLY, 0o600)
	return s, c, err
}

func (s *state) path(suffix string) string { return filepath.Join(s.folder, s.name+suffix) }

func (s *state) write(suffix, text string) error {
	return rotation.Write(s.path(suffix), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// keep replaces the key: the former one is gone.
func (s *state) keep(c chain) error {
	text, err := json.Marshal(keptState{c.epoch, hex.EncodeToString(c.key)})
	if err != nil {
		return err
	}
	return s.write(".state", string(text)+"\n")
}

// mark notes the last line. It is one write of the same length, so that a process that is killed leaves no half of it.
func (s *state) mark(c chain) error {
	_, err := s.head.WriteAt(fmt.Appendf(nil, "%020d %s\n", c.seq, c.head), 0)
	return err
}

func (s *state) close() { _ = s.head.Close() }

// ReadHead reads the file NAME.head, in which an agent notes the last line of a sink.
func ReadHead(path string) (Head, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Head{}, err
	}
	if len(text) == 0 { // nothing was written yet
		return Head{}, nil
	}
	h, err := ParseHead(string(text))
	if err != nil {
		return h, drover.Errorf(drover.Invalid, "%s: %w", path, err)
	}
	return h, nil
}

// ParseHead reads a line's number and digest, with a space or a colon between. Errors: Invalid.
func ParseHead(text string) (Head, error) {
	seq, hash, ok := strings.Cut(strings.TrimSpace(strings.Replace(text, ":", " ", 1)), " ")
	n, err := strconv.ParseUint(seq, 10, 64)
	if sum, e := hex.DecodeString(hash); !ok || err != nil || e != nil || len(sum) != 32 {
		return Head{}, drover.Errorf(drover.Invalid, "%q is no number of a line and its digest, such as 17:9f86d0…", strings.TrimSpace(text))
	}
	return Head{n, hash}, nil
}

// ReadKey reads the file NAME.key. Errors: Invalid.
func ReadKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		return nil, drover.Errorf(drover.Invalid, "%s: it is no key of an audit: 64 hexadecimal digits", path)
	}
	return key, nil
}
