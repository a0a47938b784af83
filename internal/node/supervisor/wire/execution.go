package wire

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// Exec starts an execution.
type Exec struct {
	Spec  execution.Spec
	Clone bool // as in Task
}

// Encode returns the message.
func (x Exec) Encode() []byte {
	var e Encoder
	e.Bool(x.Clone)
	e.spec(x.Spec)
	return e.B
}

// DecodeExec reads the message.
func DecodeExec(p []byte) (Exec, error) {
	d := Decoder{B: p}
	x := Exec{Clone: d.Bool()}
	x.Spec = d.spec()
	return x, d.Err
}

// spec is length-prefixed, so that it can grow inside of other messages.
func (e *Encoder) spec(s execution.Spec) {
	var i Encoder
	i.Str(s.ID)
	i.Strs(s.Argv)
	i.Map(s.Env)
	i.Str(s.WorkDir)
	i.Str(s.User)
	i.Bool(s.Privileged)
	i.Bool(s.TTY)
	i.Bool(s.TTYStderr)
	i.Uint(uint64(s.Size.Rows))
	i.Uint(uint64(s.Size.Cols))
	i.Bool(s.Stdin)
	i.limits(s.Limits)
	i.Bool(s.KeepTree)
	i.Int(int64(s.Detach))
	i.Str(s.HideEnv)
	i.Int(int64(s.Keep))
	if len(s.Secrets) > 0 {
		i.secrets(s)
	}
	e.Bytes(i.B)
}

// spec takes a length-prefixed specification. Its length lets a later version add fields at its end, as HideEnv was.
func (d *Decoder) spec() execution.Spec {
	i := Decoder{B: d.Bytes()}
	s := execution.Spec{ID: i.Str(), Argv: i.Strs(), Env: i.Map(), WorkDir: i.Str(), User: i.Str()}
	s.Privileged, s.TTY, s.TTYStderr = i.Bool(), i.Bool(), i.Bool()
	s.Size = execution.WindowSize{Rows: uint16(i.Uint()), Cols: uint16(i.Uint())}
	s.Stdin = i.Bool()
	s.Limits = i.limits()
	s.KeepTree, s.Detach = i.Bool(), time.Duration(i.Int())
	if i.Err == nil && len(i.B) > 0 { // who spoke before there was HideEnv hides nothing
		s.HideEnv = i.Str()
	}
	if i.Err == nil && len(i.B) > 0 { // and before there was Keep keeps nothing
		s.Keep = time.Duration(i.Int())
	}
	if i.Err == nil && len(i.B) > 0 { // and most have no secrets
		i.toSecrets(&s)
	}
	d.inner(i)
	return s
}

// secrets appends what a command gets, and the values if they are known. Where they come from is no business of the guest.
func (e *Encoder) secrets(s execution.Spec) {
	e.Uint(uint64(len(s.Secrets)))
	for _, x := range s.Secrets {
		e.Str(x.Env)
		e.Str(x.File)
		e.Bool(x.Mask)
	}
	e.Strs(s.Values)
}

func (d *Decoder) toSecrets(s *execution.Spec) {
	s.Secrets = make([]execution.Secret, d.Len())
	for i := range s.Secrets {
		s.Secrets[i] = execution.Secret{Env: d.Str(), File: d.Str(), Mask: d.Bool()}
	}
	s.Values = d.Strs()
}

// inner takes over the error of a decoder for an embedded value; what it left unread is ignored.
func (d *Decoder) inner(i Decoder) {
	if d.Err == nil {
		d.Err = i.Err
	}
}

// limits appends limits, length-prefixed, with durations in nanoseconds.
func (e *Encoder) limits(l drover.Limits) {
	var i Encoder
	i.Int(int64(l.Wall))
	i.Int(int64(l.CPU))
	i.Int(int64(l.CPUMHz))
	i.Int(int64(l.MemoryMB))
	i.Int(int64(l.Pids))
	i.Int(l.OutputBytes)
	i.Int(int64(l.OpenFiles))
	i.Int(int64(l.FileSizeMB))
	e.Bytes(i.B)
}

// limits takes limits; those that an older sender did not know are 0, no limit.
func (d *Decoder) limits() drover.Limits {
	i := Decoder{B: d.Bytes()}
	l := drover.Limits{
		Wall: time.Duration(i.Int()), CPU: time.Duration(i.Int()), CPUMHz: int(i.Int()), MemoryMB: int(i.Int()),
		Pids: int(i.Int()), OutputBytes: i.Int(), OpenFiles: int(i.Int()), FileSizeMB: int(i.Int()),
	}
	d.inner(i)
	return l
}

// Receipt appends a receipt, length-prefixed.
func (e *Encoder) Receipt(r execution.Receipt) {
	var i Encoder
	i.Str(r.ExecutionID)
	i.Int(int64(r.ExitCode))
	i.Int(int64(r.Signal))
	i.Str(string(r.Cause))
	i.Str(r.Error)
	i.Time(r.StartedAt)
	i.Int(int64(r.Wall))
	i.Int(int64(r.UserCPU))
	i.Int(int64(r.SystemCPU))
	i.Int(r.PeakMemory)
	i.Int(r.StdoutBytes)
	i.Int(r.StderrBytes)
	i.Bool(r.Truncated)
	e.Bytes(i.B)
}

// Receipt takes a receipt.
func (d *Decoder) Receipt() execution.Receipt {
	i := Decoder{B: d.Bytes()}
	r := execution.Receipt{ExecutionID: i.Str(), ExitCode: int(i.Int()), Signal: int(i.Int()), Cause: execution.Cause(i.Str())}
	r.Error, r.StartedAt = i.Str(), i.Time()
	r.Wall, r.UserCPU, r.SystemCPU = time.Duration(i.Int()), time.Duration(i.Int()), time.Duration(i.Int())
	r.PeakMemory, r.StdoutBytes, r.StderrBytes = i.Int(), i.Int(), i.Int()
	r.Truncated = i.Bool()
	d.inner(i)
	return r
}

// Execution appends a listed execution.
func (e *Encoder) Execution(x execution.Execution) {
	var i Encoder
	i.spec(x.Spec)
	i.Int(int64(x.Pid))
	i.Bool(x.Running)
	i.Bool(x.Receipt != nil)
	if x.Receipt != nil {
		i.Receipt(*x.Receipt)
	}
	i.Bool(x.Taken)
	e.Bytes(i.B)
}

// Execution takes a listed execution.
func (d *Decoder) Execution() execution.Execution {
	i := Decoder{B: d.Bytes()}
	x := execution.Execution{Spec: i.spec(), Pid: int(i.Int()), Running: i.Bool()}
	if i.Bool() {
		x.Receipt = new(i.Receipt())
	}
	if i.Err == nil && len(i.B) > 0 { // a supervisor of before forgets what was taken
		x.Taken = i.Bool()
	}
	x.ID = x.Spec.ID
	d.inner(i)
	return x
}
