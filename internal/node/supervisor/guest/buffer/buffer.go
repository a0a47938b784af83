package buffer

import (
	"sync"

	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Frame holds a whole data frame: its header, the offset, and wire.DataSize bytes.
type Frame [wire.HeaderSize + 8 + wire.DataSize]byte

var pool = sync.Pool{New: func() any { return new(Frame) }} // a pool is stateless

// Get lends a buffer, whose content is undefined. It is given back by Put.
func Get() *Frame { return pool.Get().(*Frame) }

// Put takes a buffer back, which nobody uses any more.
func Put(b *Frame) { pool.Put(b) }
