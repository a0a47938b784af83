package nsinit

import (
	"encoding/binary"
	"errors"
)

// The encoding is by hand: encoding/json and gob would cost the supervisor's binary more than all else in it. Agent and
// supervisor binary are of one build here (the agent embeds it), so there is no version.

var errShort = errors.New("the sandbox configuration is cut off")

type encoder struct{ b []byte }

func (e *encoder) num(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) str(s string) { e.num(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) flag(v bool)  { e.num(map[bool]uint64{true: 1}[v]) }
func (e *encoder) strs(s []string) {
	e.num(uint64(len(s)))
	for _, v := range s {
		e.str(v)
	}
}

func (e *encoder) source(s Source) {
	e.num(uint64(s.FD + 1))
	e.str(s.Path)
	e.flag(s.ReadOnly)
}

// Encode returns the configuration as it travels.
func (c *Config) Encode() []byte {
	var e encoder
	e.str(c.Hostname)
	e.num(uint64(len(c.Lowers)))
	for _, l := range c.Lowers {
		e.source(l)
	}
	e.num(uint64(c.SizeMB))
	e.num(uint64(c.Inodes))
	e.flag(c.ReadOnly)
	e.num(uint64(len(c.Scratch)))
	for _, s := range c.Scratch {
		e.str(s.Target)
		e.num(uint64(s.Mode))
		e.num(uint64(s.UID))
	}
	e.num(uint64(len(c.Binds)))
	for _, b := range c.Binds {
		e.source(b.Source)
		e.str(b.Target)
		e.flag(b.File)
		e.flag(b.Late)
	}
	e.num(uint64(len(c.Links)))
	for _, l := range c.Links {
		e.str(l[0])
		e.str(l[1])
	}
	e.flag(c.Logs != nil)
	if c.Logs != nil {
		e.source(*c.Logs)
	}
	e.str(c.DevPTS)
	e.flag(c.Loopback)
	e.strs(c.MaskFiles)
	e.strs(c.MaskDirs)
	e.strs(c.ReadOnlyPaths)
	e.flag(c.NoUserNamespaces)
	e.num(c.KeepCaps)
	e.str(string(c.Seccomp))
	e.num(uint64(len(c.Rlimits)))
	for _, r := range c.Rlimits {
		e.num(uint64(r.Resource))
		e.num(r.Soft)
		e.num(r.Hard)
	}
	return e.b
}

type decoder struct {
	b   []byte
	err error
}

func (d *decoder) num() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err, d.b = errShort, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) str() string {
	n := d.num()
	if n > uint64(len(d.b)) {
		d.err, d.b = errShort, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) flag() bool { return d.num() == 1 }

// count reads a length; each element takes at least one byte, so a wrong one cannot make us allocate.
func (d *decoder) count() int {
	n := d.num()
	if n > uint64(len(d.b)) {
		d.err, d.b = errShort, nil
		return 0
	}
	return int(n)
}

func (d *decoder) strs() []string {
	var s []string
	for range d.count() {
		s = append(s, d.str())
	}
	return s
}

func (d *decoder) source() Source {
	return Source{FD: int(d.num()) - 1, Path: d.str(), ReadOnly: d.flag()}
}

// Decode is the inverse of Encode.
func Decode(b []byte) (*Config, error) {
	d := &decoder{b: b}
	c := &Config{Hostname: d.str()}
	for range d.count() {
		c.Lowers = append(c.Lowers, d.source())
	}
	c.SizeMB, c.Inodes, c.ReadOnly = int64(d.num()), int64(d.num()), d.flag()
	for range d.count() {
		c.Scratch = append(c.Scratch, Scratch{Target: d.str(), Mode: uint32(d.num()), UID: uint32(d.num())})
	}
	for range d.count() {
		c.Binds = append(c.Binds, Bind{Source: d.source(), Target: d.str(), File: d.flag(), Late: d.flag()})
	}
	for range d.count() {
		c.Links = append(c.Links, [2]string{d.str(), d.str()})
	}
	if d.flag() {
		c.Logs = new(d.source())
	}
	c.DevPTS, c.Loopback = d.str(), d.flag()
	c.MaskFiles, c.MaskDirs, c.ReadOnlyPaths = d.strs(), d.strs(), d.strs()
	c.NoUserNamespaces, c.KeepCaps, c.Seccomp = d.flag(), d.num(), []byte(d.str())
	for range d.count() {
		c.Rlimits = append(c.Rlimits, Rlimit{Resource: uint32(d.num()), Soft: d.num(), Hard: d.num()})
	}
	return c, d.err
}
