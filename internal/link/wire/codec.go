package wire

import (
	"reflect"
	"sync"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-msgpack/v2/codec"
)

// Msgpack is a connect.Codec for any Go value. Field names are Go's own, unless a codec tag says otherwise: json tags are not
// looked at.
type Msgpack struct{}

// handle is the link's dialect of msgpack. There is one, as it learns the types that it is used for.
var handle = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.RawToString = true
	h.WriteExt = true
	h.MapType = reflect.TypeFor[map[string]any]()
	h.TypeInfos = codec.NewTypeInfos([]string{"codec"})
	return h
}()

// ClientOptions and HandlerOptions are what both sides of a call agree on. Nothing is compressed: what a node is asked and told is
// small, and compressing it took longer than anything else that was done with it. Older programs ask for gzip, and understand what is
// sent without it.
var (
	ClientOptions  = connect.WithClientOptions(connect.WithCodec(Msgpack{}), connect.WithAcceptCompression("gzip", nil, nil))
	HandlerOptions = connect.WithHandlerOptions(connect.WithCodec(Msgpack{}), connect.WithCompression("gzip", nil, nil))
)

// Name is the codec's name in content types.
func (Msgpack) Name() string { return "msgpack" }

// encoders and decoders are used again: they are larger than what most messages have to say.
var (
	encoders = sync.Pool{New: func() any { return &encoder{codec.NewEncoderBytes(new([]byte), handle), nil} }}
	decoders = sync.Pool{New: func() any { return codec.NewDecoderBytes(nil, handle) }}
)

// Marshal encodes v.
func (m Msgpack) Marshal(v any) ([]byte, error) { return m.MarshalAppend(nil, v) }

// MarshalAppend encodes v behind dst.
func (m Msgpack) MarshalAppend(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder) // it has no others
	defer encoders.Put(e)
	out := e.room[:0]
	e.ResetBytes(&out)
	err := e.Encode(v)
	e.ResetBytes(&[]byte{}) // nil would be given a buffer
	dst = append(dst, out...)
	if cap(out) <= mostRoom {
		e.room = out
	}
	return dst, err
}

// encoder has room of its own, which has mostly grown large enough: what grows with a message is copied several times.
type encoder struct {
	*codec.Encoder
	room []byte
}

// mostRoom is how much room an encoder keeps.
const mostRoom = 1 << 20

// Unmarshal decodes into v, which keeps nothing of the bytes.
func (m Msgpack) Unmarshal(data []byte, v any) error {
	d := decoders.Get().(*codec.Decoder) // it has no others
	d.ResetBytes(data)
	err := d.Decode(v)
	d.ResetBytes(nil)
	decoders.Put(d)
	return err
}
