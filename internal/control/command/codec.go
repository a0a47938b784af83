package command

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/drover-project/drover"
)

// Version is the first byte of every encoded command. Version 1, all msgpack, can still be decoded.
const Version = 2

// MaxSize bounds an encoded command in bytes. A larger one is refused before it reaches the log.
const MaxSize = 64 << 20

// kinds is how Decode finds the struct of a type byte; it is never changed.
var kinds = [kindEnd]func() Command{
	KindBarrier:                func() Command { return new(Barrier) },
	KindBatch:                  func() Command { return new(Batch) },
	KindRegisterJob:            func() Command { return new(RegisterJob) },
	KindDeregisterJob:          func() Command { return new(DeregisterJob) },
	KindUpdateEvals:            func() Command { return new(UpdateEvals) },
	KindDeleteEvals:            func() Command { return new(DeleteEvals) },
	KindApplyPlans:             func() Command { return new(ApplyPlans) },
	KindUpdateAllocs:           func() Command { return new(UpdateAllocs) },
	KindTransitionAllocs:       func() Command { return new(TransitionAllocs) },
	KindStopAllocs:             func() Command { return new(StopAllocs) },
	KindClaimRunners:           func() Command { return new(ClaimRunners) },
	KindRegisterNode:           func() Command { return new(RegisterNode) },
	KindUpdateNodeStatuses:     func() Command { return new(UpdateNodeStatuses) },
	KindSetEligibility:         func() Command { return new(SetEligibility) },
	KindSetDrain:               func() Command { return new(SetDrain) },
	KindDeregisterNodes:        func() Command { return new(DeregisterNodes) },
	KindSetSchedulerConfig:     func() Command { return new(SetSchedulerConfig) },
	KindUpsertNamespaces:       func() Command { return new(UpsertNamespaces) },
	KindDeleteNamespaces:       func() Command { return new(DeleteNamespaces) },
	KindUpsertNodePools:        func() Command { return new(UpsertNodePools) },
	KindDeleteNodePools:        func() Command { return new(DeleteNodePools) },
	KindUpsertDeployment:       func() Command { return new(UpsertDeployment) },
	KindUpdateDeploymentStatus: func() Command { return new(UpdateDeploymentStatus) },
	KindSetAllocHealth:         func() Command { return new(SetAllocHealth) },
	KindPromoteDeployment:      func() Command { return new(PromoteDeployment) },
	KindSetJobStability:        func() Command { return new(SetJobStability) },
	KindTagJobVersion:          func() Command { return new(TagJobVersion) },
	KindReap:                   func() Command { return new(Reap) },
	KindRecordScaling:          func() Command { return new(RecordScaling) },
	KindSetNodeMeta:            func() Command { return new(SetNodeMeta) },
	KindInitFleet:              func() Command { return new(InitFleet) },
	KindPutFleetPools:          func() Command { return new(PutFleetPools) },
	KindDeleteFleetPools:       func() Command { return new(DeleteFleetPools) },
	KindUpdateFleet:            func() Command { return new(UpdateFleet) },
	KindBindFleetNode:          func() Command { return new(BindFleetNode) },
	KindTellExecutions:         func() Command { return new(TellExecutions) },
	KindInitCluster:            func() Command { return new(InitCluster) },
	KindDispatchJob:            func() Command { return new(DispatchJob) },
	KindRecordExecutions:       func() Command { return new(RecordExecutions) },
	KindBeginIncarnation:       func() Command { return new(BeginIncarnation) },
	KindEndIncarnation:         func() Command { return new(EndIncarnation) },
	KindRecordRunners:          func() Command { return new(RecordRunners) },
	KindRaiseVersion:           func() Command { return new(RaiseVersion) },
	KindRestoreState:           func() Command { return new(RestoreState) },
	KindSetAutopilot:           func() Command { return new(SetAutopilot) },
	KindApplyFleetPools:        func() Command { return new(ApplyFleetPools) },
	KindNameFleet:              func() Command { return new(NameFleet) },
	KindBootstrapACL:           func() Command { return new(BootstrapACL) },
	KindUpsertACLTokens:        func() Command { return new(UpsertACLTokens) },
	KindDeleteACLTokens:        func() Command { return new(DeleteACLTokens) },
	KindUpsertACLPolicies:      func() Command { return new(UpsertACLPolicies) },
	KindDeleteACLPolicies:      func() Command { return new(DeleteACLPolicies) },
	KindUpsertACLRoles:         func() Command { return new(UpsertACLRoles) },
	KindDeleteACLRoles:         func() Command { return new(DeleteACLRoles) },
	KindPutOneTimeToken:        func() Command { return new(PutOneTimeToken) },
	KindExchangeOneTimeToken:   func() Command { return new(ExchangeOneTimeToken) },
	KindExpireACLTokens:        func() Command { return new(ExpireACLTokens) },
	KindPutRootKey:             func() Command { return new(PutRootKey) },
	KindSetRootKeyState:        func() Command { return new(SetRootKeyState) },
	KindDeleteRootKeys:         func() Command { return new(DeleteRootKeys) },
	KindUpsertAuthMethods:      func() Command { return new(UpsertAuthMethods) },
	KindDeleteAuthMethods:      func() Command { return new(DeleteAuthMethods) },
	KindUpsertBindingRules:     func() Command { return new(UpsertBindingRules) },
	KindDeleteBindingRules:     func() Command { return new(DeleteBindingRules) },
	KindChangeVariable:         func() Command { return new(ChangeVariable) },
	KindUpsertQuotas:           func() Command { return new(UpsertQuotas) },
	KindDeleteQuotas:           func() Command { return new(DeleteQuotas) },
	KindBeginExecution:         func() Command { return new(BeginExecution) },
	KindDropExecution:          func() Command { return new(DropExecution) },
	KindUpsertAdmissionRules:   func() Command { return new(UpsertAdmissionRules) },
	KindDeleteAdmissionRules:   func() Command { return new(DeleteAdmissionRules) },
	KindUpsertHostVolume:       func() Command { return new(UpsertHostVolume) },
	KindDeleteHostVolume:       func() Command { return new(DeleteHostVolume) },
	KindDeleteVolumeClaim:      func() Command { return new(DeleteVolumeClaim) },
	KindRevokeCertificate:      func() Command { return new(RevokeCertificate) },
	KindForgetRevocations:      func() Command { return new(ForgetRevocations) },
}

// handle is the msgpack dialect of log and snapshot; it is never changed.
var handle = newHandle()

func newHandle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.Canonical = true // maps in key order: the same value gives the same bytes
	h.MapType = reflect.TypeFor[map[string]any]()
	h.SliceType = reflect.TypeFor[[]any]()
	h.SignedInteger = true
	h.TypeInfos = codec.NewTypeInfos([]string{"codec"}) // not the json tags: they hide secrets from the API
	return h
}

// Encode returns the command's bytes: version, kind, then its fields in msgpack. The same command gives the same
// bytes. Errors: TooLarge, Invalid for values that msgpack does not know.
func Encode(c Command) ([]byte, error) {
	if b, ok := c.(*Batch); ok {
		return encodeBatch(b)
	}
	out, err := encode([]byte{Version, byte(c.Kind())}, c)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "encoding command %s: %w", c.Kind(), err)
	}
	if len(out) > MaxSize {
		return nil, drover.Errorf(drover.TooLarge, "command %s has %d bytes, the limit is %d", c.Kind(), len(out), MaxSize)
	}
	return out, nil
}

func encode(dst []byte, c Command) ([]byte, error) {
	switch c := c.(type) {
	case *UpdateAllocs:
		return encodeUpdates(dst, c)
	case *ApplyPlans:
		w, err := packPlans(c)
		if err != nil {
			return nil, err
		}
		return Marshal(dst, w)
	}
	return Marshal(dst, c)
}

// Decode is the inverse of Encode. Errors: Invalid for anything that Encode does not make.
func Decode(data []byte) (Command, error) { return DecodeSharing(data, nil) }

// DecodeSharing is Decode where strings that many allocations have are shared through in.
func DecodeSharing(data []byte, in *Interner) (c Command, err error) {
	if len(data) < 2 {
		return nil, drover.Errorf(drover.Invalid, "a command of %d bytes", len(data))
	}
	if data[0] != Version && data[0] != 1 {
		return nil, drover.Errorf(drover.Invalid, "command version %d, this program reads %d", data[0], Version)
	}
	kind := Kind(data[1])
	if kind == 0 || kind >= kindEnd {
		return nil, drover.Errorf(drover.Invalid, "unknown command kind %d", data[1])
	}
	switch {
	case kind == KindBatch:
		return decodeBatch(data[2:], in)
	case kind == KindApplyPlans:
		return decodePlans(data[2:], in)
	case kind == KindUpdateAllocs && data[0] > 1:
		u, err := decodeUpdates(data[2:], in)
		if err != nil {
			return nil, err // not u: a nil *UpdateAllocs is not a nil Command
		}
		return u, nil
	}
	c = kinds[kind]()
	if err := Unmarshal(data[2:], c); err != nil {
		return nil, drover.Errorf(drover.Invalid, "decoding command %s: %w", kind, err)
	}
	if r, ok := c.(*RaiseVersion); ok && r.Version > Newest {
		return nil, drover.Errorf(drover.Invalid, "the cluster writes version %d from here on, this program reads %d to %d",
			r.Version, Oldest, Newest)
	}
	return c, nil
}

// scratch is room to encode into, which is used again: an entry has up to some megabytes, and room that grows with it is twice as much.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Marshal appends v in the log's dialect of msgpack to dst. The snapshot uses it too.
func Marshal(dst []byte, v any) (out []byte, err error) {
	room := scratch.Get().(*[]byte) // it has no others
	defer scratch.Put(room)
	buf := bytes.NewBuffer((*room)[:0])
	if err := codec.NewEncoder(buf, handle).Encode(v); err != nil {
		return nil, err
	}
	*room = buf.Bytes()
	return append(slices.Grow(dst, buf.Len()), buf.Bytes()...), nil
}

// Unmarshal decodes into v what Marshal made; data must hold exactly one value.
func Unmarshal(data []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil { // the codec panics on some malformed input
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	d := codec.NewDecoderBytes(data, handle)
	if err := d.Decode(v); err != nil {
		return err
	}
	if n := d.NumBytesRead(); n != len(data) {
		return fmt.Errorf("%d bytes behind the end", len(data)-n)
	}
	return nil
}

func encodeBatch(b *Batch) ([]byte, error) {
	entries := make([][]byte, len(b.Commands))
	for i, c := range b.Commands {
		if _, nested := c.(*Batch); nested {
			return nil, drover.Errorf(drover.Invalid, "a batch in a batch")
		}
		entry, err := Encode(c)
		if err != nil {
			return nil, err
		}
		entries[i] = entry
	}
	return Marshal([]byte{Version, byte(KindBatch)}, entries)
}

func decodePlans(data []byte, in *Interner) (Command, error) {
	w := new(wirePlans)
	if err := Unmarshal(data, w); err != nil {
		return nil, drover.Errorf(drover.Invalid, "decoding command %s: %w", KindApplyPlans, err)
	}
	c, err := w.unpack(in)
	if err != nil {
		return nil, err // not c: a nil *ApplyPlans is not a nil Command
	}
	return c, nil
}

func decodeBatch(data []byte, in *Interner) (Command, error) {
	var entries [][]byte
	if err := Unmarshal(data, &entries); err != nil {
		return nil, drover.Errorf(drover.Invalid, "decoding batch: %w", err)
	}
	b := &Batch{Commands: make([]Command, len(entries))}
	for i, entry := range entries {
		if len(entry) > 1 && Kind(entry[1]) == KindBatch {
			return nil, drover.Errorf(drover.Invalid, "a batch in a batch")
		}
		c, err := DecodeSharing(entry, in)
		if err != nil {
			return nil, err
		}
		b.Commands[i] = c
	}
	return b, nil
}
