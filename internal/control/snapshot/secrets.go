package snapshot

import "github.com/drover-project/drover"

// secrets writes the records of what is kept encrypted: root keys are wrapped.
func (x *imageWriter) secrets() error {
	if err := writeAll(x, recRootKey, x.s.RootKeys()); err != nil {
		return err
	}
	return writeAll(x, recVariable, x.s.Variables("*", ""))
}

// secrets restores the records of what is kept encrypted, and refuses every kind that no reader knows.
func (x *imageReader) secrets(kind recordKind, payload []byte) error {
	switch kind {
	case recRootKey:
		return read(payload, x.t.RestoreRootKey)
	case recVariable:
		return read(payload, x.t.RestoreVariable)
	default:
		return drover.Errorf(drover.Invalid, "unknown kind")
	}
}
