package allocations

import (
	"encoding/base64"
	"fmt"

	"github.com/drover-project/drover/execution"
)

// execEncoder writes output frames without allocating: {"stdout":{"data":"<base64>"}}.
type execEncoder struct{ buf []byte }

// data renders one frame of output. The slice is the encoder's own buffer: it is valid until the next call.
func (e *execEncoder) data(stream execution.Stream, p []byte) []byte {
	name := `{"stdout":{"data":"`
	if stream == execution.Stderr {
		name = `{"stderr":{"data":"`
	}
	e.buf = append(e.buf[:0], name...)
	e.buf = base64.StdEncoding.AppendEncode(e.buf, p)
	e.buf = append(e.buf, `"}}`...)
	return e.buf
}

// exitFrame omits a zero exit code, as Nomad does.
func exitFrame(code int) string {
	if code == 0 {
		return `{"exited":true,"result":{}}`
	}
	return fmt.Sprintf(`{"exited":true,"result":{"exit_code":%d}}`, code)
}
