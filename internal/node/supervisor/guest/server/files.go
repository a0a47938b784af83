package server

import (
	"bytes"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/internal/stack"
)

// openFiles starts file work.
func (c *conn) openFiles(ch channel.Channel, op wire.Op, d *wire.Decoder) {
	work := c.s.fileWork(op)
	if work == nil {
		ch.Answer(nil, drover.Errorf(drover.NotImplemented, "this supervisor does not know operation %d", op))
		return
	}
	t := channel.NewTransfer(ch)
	c.add(ch.ID, t)
	go func() { // ends with the work, or when the agent closes the channel and so ends its streams
		stack.Grow8K()
		err := work(t, d)
		c.Remove(ch.ID)
		// After a failure the answer is the last frame; without one the end of the stream says that all of it came.
		if err != nil {
			ch.Answer(nil, err)
			return
		}
		_ = ch.Send(wire.KindEnd, nil)
	}()
}

// fileWork returns what does an operation, nil for one that is none of files.
func (s *Server) fileWork(op wire.Op) func(*channel.Transfer, *wire.Decoder) error {
	switch op {
	case wire.OpFileList:
		return asked(func(t *channel.Transfer, req execution.FileRequest) error { return s.files.List(t, req) })
	case wire.OpFileRead:
		return asked(s.readFile)
	case wire.OpFileApply:
		return func(_ *channel.Transfer, d *wire.Decoder) error { return s.applyFiles(d) }
	case wire.OpFileWrite:
		return func(t *channel.Transfer, d *wire.Decoder) error {
			c := d.FileChange()
			if d.Err != nil {
				return d.Err
			}
			// The operation says it: content in the stream can only be written.
			c.Write = true
			return s.files.Apply(c, t.In)
		}
	case wire.OpArchive:
		return asked(func(t *channel.Transfer, req execution.FileRequest) error { return s.files.Archive(t, req) })
	case wire.OpExtract:
		return asked(func(t *channel.Transfer, req execution.FileRequest) error { return s.files.Extract(t.In, req) })
	default:
		return nil
	}
}

// asked decodes the request that work is done for. Half a one would be of the working directory.
func asked(work func(*channel.Transfer, execution.FileRequest) error) func(*channel.Transfer, *wire.Decoder) error {
	return func(t *channel.Transfer, d *wire.Decoder) error {
		req := d.FileRequest()
		if d.Err != nil {
			return d.Err
		}
		return work(t, req)
	}
}

// readFile sends a file's description and content.
func (s *Server) readFile(t *channel.Transfer, req execution.FileRequest) error {
	return s.files.Read(t, func(info execution.FileInfo) {
		var e wire.Encoder
		e.FileInfo(info)
		t.Answer(e.B, nil)
	}, req)
}

// applyFiles makes changes in order, up to the first that fails.
func (s *Server) applyFiles(d *wire.Decoder) error {
	n := d.Len()
	for range n {
		c := d.FileChange()
		if d.Err != nil {
			return d.Err
		}
		if err := s.files.Apply(c, bytes.NewReader(c.Data)); err != nil {
			return err
		}
	}
	return d.Err
}
