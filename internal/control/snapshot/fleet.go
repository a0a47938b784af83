package snapshot

// fleet writes the fleet's tables. They stand behind everything else, because they were added after the other tables.
func (x *imageWriter) fleet() error {
	if i := x.s.FleetIdentity(); i != nil {
		if err := x.write(recFleetIdentity, i); err != nil {
			return err
		}
	}
	if err := writeAll(x, recFleetPool, x.s.FleetPools()); err != nil {
		return err
	}
	if err := writeAll(x, recFleetInstance, x.s.FleetInstances("")); err != nil {
		return err
	}
	if err := writeAll(x, recFleetCost, x.s.FleetCosts("")); err != nil {
		return err
	}
	return writeAll(x, recFleetMemory, x.s.FleetMemories())
}

// fleet restores the fleet's records.
func (x *imageReader) fleet(kind recordKind, payload []byte) error {
	switch kind {
	case recFleetIdentity:
		return read(payload, x.t.RestoreFleetIdentity)
	case recFleetPool:
		return read(payload, x.t.RestoreFleetPool)
	case recFleetInstance:
		return read(payload, x.t.RestoreFleetInstance)
	case recFleetCost:
		return read(payload, x.t.RestoreFleetCost)
	case recFleetMemory:
		return read(payload, x.t.PutFleetMemory)
	default:
		return x.acl(kind, payload)
	}
}
