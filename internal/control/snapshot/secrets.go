package snapshot

import "github.com/drover-project/drover"

// secrets writes the records of what is kept encrypted, root keys being wrapped, and of quotas, admission rules, volumes, their claims and
// revocations.
func (x *imageWriter) secrets() error {
	if err := writeAll(x, recRootKey, x.s.RootKeys()); err != nil {
		return err
	}
	if err := writeAll(x, recVariable, x.s.Variables("*", "")); err != nil {
		return err
	}
	if err := writeAll(x, recQuota, x.s.Quotas("")); err != nil {
		return err
	}
	if err := writeAll(x, recExecutionSlot, x.s.ExecutionSlots()); err != nil {
		return err
	}
	if err := writeAll(x, recSpent, x.s.AllSpent()); err != nil {
		return err
	}
	if err := writeAll(x, recAdmissionRule, x.s.AdmissionRules()); err != nil {
		return err
	}
	if err := writeAll(x, recHostVolume, x.s.HostVolumes("*", "")); err != nil {
		return err
	}
	if err := writeAll(x, recVolumeClaim, x.s.VolumeClaims("*", "")); err != nil {
		return err
	}
	return writeAll(x, recRevocation, x.s.Revocations())
}

// secrets restores the records of what is kept encrypted, of quotas, admission rules, volumes, their claims and revocations, and refuses
// every kind that no reader knows.
func (x *imageReader) secrets(kind recordKind, payload []byte) error {
	switch kind {
	case recRootKey:
		return read(payload, x.t.RestoreRootKey)
	case recVariable:
		return read(payload, x.t.RestoreVariable)
	case recQuota:
		return read(payload, x.t.RestoreQuota)
	case recExecutionSlot:
		return read(payload, x.t.RestoreExecutionSlot)
	case recSpent:
		return read(payload, x.t.RestoreSpent)
	case recAdmissionRule:
		return read(payload, x.t.RestoreAdmissionRule)
	case recHostVolume:
		return read(payload, x.t.RestoreHostVolume)
	case recVolumeClaim:
		return read(payload, x.t.RestoreVolumeClaim)
	case recRevocation:
		return read(payload, x.t.RestoreRevocation)
	default:
		return drover.Errorf(drover.Invalid, "unknown kind")
	}
}
