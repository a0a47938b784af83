package link

import (
	"reflect"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-msgpack/v2/codec"
)

// msgpack is a connect.Codec for any Go value. Field names are Go's own, unless a codec tag says otherwise: json tags are not
// looked at.
type msgpack struct{}

// handle is the link's dialect of msgpack. There is one, as it learns the types that it is used for.
var handle = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.RawToString = true
	h.WriteExt = true
	h.MapType = reflect.TypeFor[map[string]any]()
	h.TypeInfos = codec.NewTypeInfos([]string{"codec"})
	return h
}()

// What both sides of a call agree on. Nothing is compressed: what a node is asked and told is small, and compressing it took
// longer than anything else that was done with it. Older programs ask for gzip, and understand what is sent without it.
var (
	clientOptions  = connect.WithClientOptions(connect.WithCodec(msgpack{}), connect.WithAcceptCompression("gzip", nil, nil))
	handlerOptions = connect.WithHandlerOptions(connect.WithCodec(msgpack{}), connect.WithCompression("gzip", nil, nil))
)

// Name is the codec's name in content types.
func (msgpack) Name() string { return "msgpack" }

// encoders and decoders are used again: they are larger than what most messages have to say.
var (
	encoders = sync.Pool{New: func() any { return codec.NewEncoderBytes(new([]byte), handle) }}
	decoders = sync.Pool{New: func() any { return codec.NewDecoderBytes(nil, handle) }}
)

// Marshal encodes v.
func (m msgpack) Marshal(v any) ([]byte, error) { return m.MarshalAppend(nil, v) }

// MarshalAppend encodes v behind dst. Connect gives it buffers that were used before, which have mostly grown large enough.
func (m msgpack) MarshalAppend(dst []byte, v any) ([]byte, error) {
	dst = slices.Grow(dst, leastRoom)
	out := dst[len(dst):]
	e := encoders.Get().(*codec.Encoder) // it has no others
	e.ResetBytes(&out)
	err := e.Encode(v)
	e.ResetBytes(&[]byte{}) // nil would be given a buffer
	encoders.Put(e)
	if len(out) <= cap(dst)-len(dst) { // it was written where it belongs
		return dst[:len(dst)+len(out)], err
	}
	return append(dst, out...), err
}

// leastRoom is what small messages fit into.
const leastRoom = 512

// Unmarshal decodes into v, which keeps nothing of the bytes.
func (m msgpack) Unmarshal(data []byte, v any) error {
	d := decoders.Get().(*codec.Decoder) // it has no others
	d.ResetBytes(data)
	err := d.Decode(v)
	d.ResetBytes(nil)
	decoders.Put(d)
	return err
}
