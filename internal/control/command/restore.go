package command

// RestoreState replaces the whole state by a snapshot's, which comes in several of these: an entry is bounded. The parts have no
// effect before the last one has come. They are dropped when another restore begins, or another term of office,
// or no more come. Result: nil.
// Errors: Conflict if parts before this one are missing; Invalid for what is no snapshot; nothing is changed then.
type RestoreState struct {
	ID   string // of the restore
	Part int    // counted from 0
	Data []byte // of the snapshot, compressed by gzip
	Last bool

	// What follows is of the last part.

	Epoch string // that the state gets at least: it is in any case later than the present one's, and than the snapshot's
	// Then is done to the restored state before anybody sees it.
	Then StopAllocs
}

// Kind implements Command.
func (*RestoreState) Kind() Kind { return KindRestoreState }
