package wire

import (
	"time"

	"github.com/drover-project/drover"
)

// Hello opens a connection: the agent's first, then the supervisor's.
type Hello struct {
	Min, Max uint64 // versions spoken; the answer has the chosen one in both
	Pid      int    // the supervisor's, in its own pid namespace
	ID       string // the task start's
	Failure  string // the supervisor cannot serve: why
}

// Encode returns the message.
func (h Hello) Encode() []byte {
	var e Encoder
	e.Uint(h.Min)
	e.Uint(h.Max)
	e.Int(int64(h.Pid))
	e.Str(h.ID)
	e.Str(h.Failure)
	return e.B
}

// DecodeHello reads the message.
func DecodeHello(b []byte) (Hello, error) {
	d := Decoder{B: b}
	h := Hello{Min: d.Uint(), Max: d.Uint(), Pid: int(d.Int()), ID: d.Str(), Failure: d.Str()}
	return h, d.Err
}

// Failure is an error on the wire.
type Failure struct {
	Code    drover.Code
	Message string
}

// EncodeError turns an error into a failure's bytes.
func EncodeError(err error) []byte {
	var e Encoder
	e.Str(drover.CodeOf(err).String()) // by name: codes may be renumbered between versions
	e.Str(err.Error())
	return e.B
}

// DecodeError turns a failure's bytes back into an error.
func DecodeError(b []byte) error {
	d := Decoder{B: b}
	code, message := d.Str(), d.Str()
	if d.Err != nil {
		return d.Err
	}
	return drover.Errorf(drover.ParseCode(code), "%s", message)
}

// Boot is drover-init's configuration, read from descriptor ConfigFD before anything else.
type Boot struct {
	ID          string
	LogTask     string // "" = the main task's output is thrown away
	LogMaxFiles int
	LogMaxSize  int64
	UID, GID    uint32
	Groups      []uint32
	WorkDir     string
	Env         map[string]string
	Grace       time.Duration
	Sandbox     []byte
	Drop        uint64 // capabilities that no program gets, as bits
	// CgroupNamespace: each program gets one, whose root is its control group.
	CgroupNamespace bool
	Ambient         uint64 // capabilities that programs of users other than root have, as bits
}

// The descriptors that drover-init is started with.
const (
	ListenerFD = 3
	ConfigFD   = 4
	LogDirFD   = 5
)

// Encode returns the message.
func (b Boot) Encode() []byte {
	var e Encoder
	e.Str(b.ID)
	e.Str(b.LogTask)
	e.Int(int64(b.LogMaxFiles))
	e.Int(b.LogMaxSize)
	e.Uint(uint64(b.UID))
	e.Uint(uint64(b.GID))
	e.Uint(uint64(len(b.Groups)))
	for _, g := range b.Groups {
		e.Uint(uint64(g))
	}
	e.Str(b.WorkDir)
	e.Map(b.Env)
	e.Int(int64(b.Grace))
	e.Bytes(b.Sandbox)
	e.Uint(b.Drop)
	e.Bool(b.CgroupNamespace)
	e.Uint(b.Ambient)
	return e.B
}

// DecodeBoot reads the message.
func DecodeBoot(p []byte) (Boot, error) {
	d := Decoder{B: p}
	b := Boot{ID: d.Str(), LogTask: d.Str(), LogMaxFiles: int(d.Int()), LogMaxSize: d.Int()}
	b.UID, b.GID = uint32(d.Uint()), uint32(d.Uint())
	for range d.Len() {
		b.Groups = append(b.Groups, uint32(d.Uint()))
	}
	b.WorkDir, b.Env = d.Str(), d.Map()
	b.Grace, b.Sandbox, b.Drop, b.CgroupNamespace = time.Duration(d.Int()), d.Bytes(), d.Uint(), d.Bool()
	b.Ambient = d.Uint()
	return b, d.Err
}

// Task is the main task to start.
type Task struct {
	Argv    []string
	Env     map[string]string
	WorkDir string
	User    string
	Rlimits map[int]uint64
	Clone   bool // the first descriptor is a v2 group to clone into, the others are cgroup.procs files
	TTY     bool // it has a terminal, and what it writes there is its stdout
	Input   bool // its input has no end before it: nobody writes to it
}

// Encode returns the message.
func (t Task) Encode() []byte {
	var e Encoder
	e.Strs(t.Argv)
	e.Map(t.Env)
	e.Str(t.WorkDir)
	e.Str(t.User)
	e.Uint(uint64(len(t.Rlimits)))
	for r, v := range t.Rlimits {
		e.Uint(uint64(r))
		e.Uint(v)
	}
	e.Bool(t.Clone)
	e.Bool(t.TTY)
	e.Bool(t.Input)
	return e.B
}

// DecodeTask reads the message.
func DecodeTask(p []byte) (Task, error) {
	d := Decoder{B: p}
	t := Task{Argv: d.Strs(), Env: d.Map(), WorkDir: d.Str(), User: d.Str()}
	if n := d.Len(); n > 0 {
		t.Rlimits = make(map[int]uint64, n)
		for range n {
			r := int(d.Uint())
			t.Rlimits[r] = d.Uint()
		}
	}
	t.Clone, t.TTY, t.Input = d.Bool(), d.Bool(), d.Bool()
	return t, d.Err
}
