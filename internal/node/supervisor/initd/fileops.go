package initd

import (
	"drover"
	"drover/internal/node/supervisor/proto"
)

func (c *conn) openFiles(channel uint32, op proto.Op, d *proto.Decoder) {
	c.fail(channel, drover.Errorf(drover.NotImplemented, "this supervisor does not know operation %d", op))
}
