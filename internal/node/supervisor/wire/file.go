package wire

import (
	"github.com/drover-project/drover/execution"
)

// FileRequest appends a file request.
func (e *Encoder) FileRequest(r execution.FileRequest) {
	var i Encoder
	i.Str(r.Path)
	i.Bool(r.Recursive)
	i.Bool(r.Privileged)
	i.Int(r.Offset)
	i.Int(r.Length)
	e.Bytes(i.B)
}

// FileRequest takes a file request.
func (d *Decoder) FileRequest() execution.FileRequest {
	i := Decoder{B: d.Bytes()}
	r := execution.FileRequest{Path: i.Str(), Recursive: i.Bool(), Privileged: i.Bool(), Offset: i.Int(), Length: i.Int()}
	d.inner(i)
	return r
}

// FileInfo appends a file's description.
func (e *Encoder) FileInfo(f execution.FileInfo) {
	var i Encoder
	i.Str(f.Path)
	i.Str(f.Type)
	i.Int(f.Size)
	i.Uint(uint64(f.Mode))
	i.Int(int64(f.UID))
	i.Int(int64(f.GID))
	i.Str(f.Owner)
	i.Str(f.Group)
	i.Time(f.ModTime)
	i.Str(f.LinkTarget)
	e.Bytes(i.B)
}

// FileInfo takes a file's description.
func (d *Decoder) FileInfo() execution.FileInfo {
	i := Decoder{B: d.Bytes()}
	f := execution.FileInfo{Path: i.Str(), Type: i.Str(), Size: i.Int(), Mode: uint32(i.Uint())}
	f.UID, f.GID = int(i.Int()), int(i.Int())
	f.Owner, f.Group, f.ModTime, f.LinkTarget = i.Str(), i.Str(), i.Time(), i.Str()
	d.inner(i)
	return f
}

// FileChange appends a change.
func (e *Encoder) FileChange(c execution.FileChange) {
	var i Encoder
	i.Str(c.Path)
	i.Bool(c.Delete)
	i.Bool(c.Mkdir)
	i.Bool(c.Write)
	i.Bytes(c.Data)
	i.Uint(uint64(c.Mode))
	i.Str(c.Owner)
	e.Bytes(i.B)
}

// FileChange takes a change; its data points into the message.
func (d *Decoder) FileChange() execution.FileChange {
	i := Decoder{B: d.Bytes()}
	c := execution.FileChange{Path: i.Str(), Delete: i.Bool(), Mkdir: i.Bool(), Write: i.Bool(), Data: i.Bytes()}
	c.Mode, c.Owner = uint32(i.Uint()), i.Str()
	d.inner(i)
	return c
}
