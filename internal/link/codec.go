package link

import (
	"bytes"
	"reflect"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// msgpack is a connect.Codec for any Go value. Field names are Go's own: json tags are not looked at.
type msgpack struct{ handle *codec.MsgpackHandle }

// newMsgpack is the codec of the link. Fields go by their Go names unless a codec tag says otherwise.
func newMsgpack() msgpack {
	h := &codec.MsgpackHandle{}
	h.RawToString = true
	h.WriteExt = true
	h.MapType = reflect.TypeFor[map[string]any]()
	h.TypeInfos = codec.NewTypeInfos([]string{"codec"})
	return msgpack{h}
}

// Name is the codec's name in content types.
func (msgpack) Name() string { return "msgpack" }

// Marshal encodes v.
func (m msgpack) Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	err := codec.NewEncoder(&buf, m.handle).Encode(v)
	return buf.Bytes(), err
}

// Unmarshal decodes into v. The bytes may be kept by v.
func (m msgpack) Unmarshal(data []byte, v any) error {
	return codec.NewDecoderBytes(data, m.handle).Decode(v)
}
