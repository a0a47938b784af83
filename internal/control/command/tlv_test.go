package command

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// record has a field of each type that the writer knows.
type record struct {
	uint   uint64
	int    int64
	bool   bool
	string string
	list   []string
	time   time.Time
	inner  *record
	pack   map[string]string
}

func (x *record) write(w *writer) error {
	w.uint(1, x.uint)
	w.int(2, x.int)
	w.bool(3, x.bool)
	w.string(4, x.string)
	for _, s := range x.list {
		w.element(5, s)
	}
	w.time(6, x.time)
	var err error
	if x.inner != nil {
		w.message(7, func(w *writer) { err = x.inner.write(w) })
	}
	if x.pack != nil && err == nil {
		err = w.msgpack(8, x.pack)
	}
	return err
}

func (x *record) read(r *reader) {
	for r.next() {
		switch r.n {
		case 1:
			x.uint = r.value
		case 2:
			x.int = r.int()
		case 3:
			x.bool = r.bool()
		case 4:
			x.string = r.string()
		case 5:
			x.list = append(x.list, r.shared())
		case 6:
			x.time = r.time()
		case 7:
			inner := r.inner()
			x.inner = &record{}
			x.inner.read(&inner)
			r.done(&inner)
		case 8:
			r.msgpack(&x.pack)
		}
	}
}

func drawRecord(t *rapid.T, depth int) *record {
	x := &record{
		uint: rapid.Uint64().Draw(t, "uint"), int: rapid.Int64().Draw(t, "int"), bool: rapid.Bool().Draw(t, "bool"),
		string: rapid.String().Draw(t, "string"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "elements") {
		x.list = append(x.list, rapid.SampledFrom([]string{"", "a", "b", strings.Repeat("x", 200)}).Draw(t, "element"))
	}
	if rapid.Bool().Draw(t, "has time") {
		x.time = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
	}
	if depth > 0 && rapid.Bool().Draw(t, "has inner") {
		x.inner = drawRecord(t, depth-1)
	}
	if rapid.Bool().Draw(t, "has pack") {
		x.pack = map[string]string{rapid.String().Draw(t, "key"): "v"}
	}
	return x
}

// TestRecordsComeBack: whatever is written is read, with fields of a newer program in between, and no cut record is more
// than its beginning.
func TestRecordsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := drawRecord(t, 3)
		w := &writer{}
		w.uint(99, 7) // fields that this program does not know
		w.string(98, "later")
		require.NoError(t, x.write(w))
		w.string(97, "later")
		for _, in := range []*Interner{nil, NewInterner()} {
			back, r := &record{}, &reader{data: w.buf, strings: in}
			back.read(r)
			require.NoError(t, r.err("record"))
			require.Equal(t, x, back)
		}
		cut := rapid.IntRange(0, len(w.buf)).Draw(t, "cut")
		r := &reader{data: w.buf[:cut]}
		(&record{}).read(r) // it must not panic, nor go on for ever
		require.False(t, r.next())
	})
}

func TestZeroValuesTakeNoBytes(t *testing.T) {
	t.Parallel()
	w := &writer{}
	require.NoError(t, (&record{}).write(w))
	require.Empty(t, w.buf)
}

// TestMessagesOfAnyLength: the length stands before the message and takes more bytes where that is longer.
func TestMessagesOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 125, 126, 127, 128, 129, 16_380, 16_381, 16_384, 16_390, 1 << 21} {
		text := strings.Repeat("y", n)
		w := &writer{buf: []byte("before")}
		w.message(1, func(w *writer) { w.element(2, text) })
		w.uint(3, 4)
		r := &reader{data: w.buf[len("before"):]}
		require.True(t, r.next(), n)
		inner := r.inner()
		require.True(t, inner.next(), n)
		require.Equal(t, text, inner.string(), n)
		require.False(t, inner.next(), n)
		require.True(t, r.next(), n)
		require.Equal(t, uint64(4), r.value, n)
		require.False(t, r.next(), n)
		require.NoError(t, r.err("it"), n)
	}
}

func TestMalformedFields(t *testing.T) {
	t.Parallel()
	long := []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255} // no uvarint has that many
	for name, data := range map[string][]byte{
		"a number that does not end":  {0x80},
		"a number that is too long":   long,
		"a field without its value":   {1 << 1},
		"a value that does not end":   {1 << 1, 0x80},
		"a length beyond the end":     {1<<1 | 1, 5, 'a', 'b'},
		"the largest length":          append([]byte{1<<1 | 1}, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
		"an inner one is malformed":   {7<<1 | 1, 1, 0x80},
		"a time that does not end":    {6<<1 | 1, 1, 0x80},
		"msgpack that is none":        {8<<1 | 1, 1, 0xc1},
		"msgpack with something else": {8<<1 | 1, 2, 0x80, 0},
	} {
		r := &reader{data: data}
		(&record{}).read(r)
		require.Equal(t, drover.Invalid, drover.CodeOf(r.err("record")), name)
		require.ErrorContains(t, r.err("record"), "malformed record", name)
		require.False(t, r.next(), "%s: nothing is read behind it", name)
	}
}

func TestExtremes(t *testing.T) {
	t.Parallel()
	for _, x := range []*record{
		{uint: math.MaxUint64, int: math.MinInt64},
		{int: math.MaxInt64},
		{int: -1},
		{list: []string{"", ""}},
		{time: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)},
		{time: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)},
		{inner: &record{}},
		{pack: map[string]string{}},
	} {
		w := &writer{}
		require.NoError(t, x.write(w))
		back := &record{}
		back.read(&reader{data: w.buf})
		require.Equal(t, x, back)
	}
	elsewhere := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("somewhere", 3600))
	w := &writer{}
	w.time(6, elsewhere)
	back := &record{}
	back.read(&reader{data: w.buf})
	require.True(t, elsewhere.Equal(back.time))
	require.Equal(t, time.UTC, back.time.Location(), "an instant, without its place")
}

func TestInternersShare(t *testing.T) {
	t.Parallel()
	in := NewInterner()
	one, two := in.of([]byte("web")), in.of([]byte("web"))
	require.Equal(t, "web", one)
	require.Equal(t, one, two)
	require.Len(t, in.strings, 1)
	require.Empty(t, in.of(nil))
	require.Len(t, in.strings, 1, "the empty string needs no place")
	require.Equal(t, "web", (*Interner)(nil).of([]byte("web")))
	require.Equal(t, map[string]string{}, in.none())
	require.Equal(t, map[string]string{}, (*Interner)(nil).none())
}

// TestBatches: a batch gives its commands back in their order, shares strings among them, and is refused as a whole.
func TestBatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &Batch{Commands: []Command{}}
		for range rapid.IntRange(0, 5).Draw(t, "commands") {
			switch rapid.IntRange(0, 2).Draw(t, "which") {
			case 0:
				b.Commands = append(b.Commands, &Barrier{})
			case 1:
				b.Commands = append(b.Commands, &DeleteEvals{IDs: []string{rapid.String().Draw(t, "id")}})
			default:
				b.Commands = append(b.Commands, &SetNodeMeta{NodeID: "n", Time: rapid.Int64().Draw(t, "time")})
			}
		}
		data, err := Encode(b)
		require.NoError(t, err)
		back, err := Decode(data)
		require.NoError(t, err)
		require.Equal(t, b, back)
		if len(b.Commands) > 0 {
			_, err = Decode(data[:len(data)-1])
			require.Error(t, err)
		}
	})
	inner, err := Encode(&Batch{})
	require.NoError(t, err)
	for name, entries := range map[string][][]byte{"nested": {inner}, "an unknown kind": {{Version, 250}}, "an empty entry": {{}}} {
		data, err := Marshal([]byte{Version, byte(KindBatch)}, entries)
		require.NoError(t, err)
		_, err = Decode(data)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), name)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes a hundred megabytes")
	}
	_, err := Encode(&DeleteEvals{IDs: []string{strings.Repeat("x", MaxSize)}})
	require.Equal(t, drover.TooLarge, drover.CodeOf(err))
}

// Each event of a task would be an object of its own, of millions in a large state.
func TestEventsLieTogether(t *testing.T) {
	in := NewInterner()
	objects := func(events int) float64 {
		s := &drover.TaskState{State: drover.TaskStateRunning}
		for i := range events {
			s.Events = append(s.Events, &drover.TaskEvent{Type: drover.TaskStarted, Time: int64(i), Details: map[string]string{}})
		}
		w := &writer{}
		w.taskState(s)
		read := func() *drover.TaskState {
			r := &reader{data: w.buf, strings: in}
			return r.state()
		}
		require.Equal(t, s, read())
		return testing.AllocsPerRun(100, func() { read() })
	}
	require.Equal(t, objects(2), objects(10))
}
